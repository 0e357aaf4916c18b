"""Exact search against a full sort, with filters, ties, small blocks and too few labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, random_array

from primexmc.retrieval import exact
from primexmc.retrieval.exact import ExactIndex


def full_sort(h, z, top, filtered=None):
    """Every score in float64, sorted by falling score, then rising id."""
    ids, scores = np.full((len(h), top), -1), np.full((len(h), top), -np.inf)
    for row, query in enumerate(np.asarray(h, np.float64)):
        banned = set() if filtered is None else set(filtered[[row]].indices.tolist())
        found = [(-float(query @ label), number) for number, label in enumerate(z) if number not in banned]
        for rank, (score, number) in enumerate(sorted(found)[:top]):
            ids[row, rank], scores[row, rank] = number, -score
    return ids, scores


@pytest.mark.parametrize("labels_per_block", [None, 7, 1])
@pytest.mark.parametrize("top", [1, 10, 53, 80])
@pytest.mark.parametrize("with_filter", [False, True])
def test_equals_a_full_sort(labels_per_block, top, with_filter, monkeypatch):
    monkeypatch.setitem(exact.QUERIES_PER_BLOCK, "cpu", 8)
    rng = np.random.default_rng(top)
    h, z = rng.standard_normal((21, 6)).astype(np.float32), rng.standard_normal((53, 6)).astype(np.float32)
    filtered = csr_matrix(random_array((21, 53), density=0.3, rng=rng)) if with_filter else None
    ids, scores = ExactIndex(torch.from_numpy(z), labels_per_block=labels_per_block).search(h, top, filtered)
    expected_ids, expected_scores = full_sort(h, z.astype(np.float64), top, filtered)
    assert ids.dtype == np.int64 and scores.dtype == np.float32
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("labels_per_block", [None, 16])
@pytest.mark.parametrize("top", [1, 5, 30])
def test_equal_scores_come_by_rising_id(labels_per_block, top):
    """Small whole numbers: products are exact, and most scores are tied."""
    rng = np.random.default_rng(1)
    h, z = rng.integers(-1, 2, (40, 3)).astype(np.float32), rng.integers(-1, 2, (100, 3)).astype(np.float32)
    ids, _ = ExactIndex(torch.from_numpy(z), labels_per_block=labels_per_block).search(torch.from_numpy(h), top)
    np.testing.assert_array_equal(ids, full_sort(h, z, top)[0])


def test_filtered_pairs_never_come_back():
    z = torch.eye(3)
    filtered = csr_matrix([[1, 1, 1], [0, 1, 0]])
    ids, scores = ExactIndex(z).search(np.eye(3, dtype=np.float32)[:2], 3, filtered)
    assert ids.tolist() == [[-1, -1, -1], [0, 2, -1]]
    assert np.isneginf(scores[0]).all() and scores[1, :2].tolist() == [0, 0] and np.isneginf(scores[1, 2])


def test_no_queries_and_no_labels():
    ids, scores = ExactIndex(torch.eye(3)).search(np.empty((0, 3), np.float32), 5)
    assert ids.shape == scores.shape == (0, 5)
    ids, scores = ExactIndex(torch.empty(0, 3)).search(np.ones((2, 3), np.float32), 5)
    assert (ids == -1).all() and np.isneginf(scores).all()


def test_half_precision_labels_give_fp32_scores_on_the_cpu():
    rng = np.random.default_rng(2)
    z = torch.from_numpy(rng.standard_normal((30, 8)).astype(np.float32)).bfloat16()
    h = rng.standard_normal((4, 8)).astype(np.float32)
    ids, scores = ExactIndex(z).search(h, 5)
    expected_ids, expected_scores = full_sort(h, z.double().numpy(), 5)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gpu_finds_what_the_cpu_finds(dtype):
    rng = np.random.default_rng(3)
    z = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((200_000, 64)).astype(np.float32)), dim=1)
    h = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((1500, 64)).astype(np.float32)), dim=1)
    z, h = z.to(dtype), h.to(dtype)
    filtered = csr_matrix((np.ones(1500), (np.arange(1500), np.arange(1500))), shape=(1500, 200_000))
    ids, scores = ExactIndex(z.cuda()).search(h.float(), 100, filtered)
    expected_ids, expected_scores = ExactIndex(z.float(), precision="fp32").search(h.float(), 100, filtered)
    np.testing.assert_allclose(scores, expected_scores, atol=2e-6)
    assert (ids == expected_ids).mean() > 0.999  # neighbours closer than fp32 may change places


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["auto", "bf16", "fp32"])
def test_a_shortlist_on_the_gpu_finds_what_fp32_finds(precision):
    rng = np.random.default_rng(4)
    z = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((150_000, 64)).astype(np.float32)), dim=1)
    h = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((300, 64)).astype(np.float32)), dim=1)
    ids, scores = ExactIndex(z.cuda(), precision=precision).search(h, 100)
    expected_ids, expected_scores = ExactIndex(z, precision="fp32").search(h, 100)
    np.testing.assert_allclose(scores, expected_scores, atol=2e-6)
    assert (ids == expected_ids).mean() > 0.999
