"""Milvus Lite compares with every label: its answers are those of exact search."""

from __future__ import annotations

import numpy as np
from retrieval.contract.backends import needs, world


@needs("milvus_lite")
def test_milvus_embedded_finds_what_exact_search_finds(make):
    z, h = world(3000, 50)
    ids, scores = make("milvus embedded", z).search(h, 10)
    expected_ids, expected_scores = make("exact fp32", z).search(h, 10)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)
    tied = np.isclose(expected_scores[:, :-1], expected_scores[:, 1:], atol=1e-6).any(axis=1)
    np.testing.assert_array_equal(ids[~tied], expected_ids[~tied])
    assert tied.mean() < 0.2
