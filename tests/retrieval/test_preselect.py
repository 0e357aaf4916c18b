"""Short codes: their error is never larger than they say, and all that belongs to the best is preselected."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, random_array

from primexmc.retrieval import preselect
from primexmc.retrieval import shortlist as shortlist_module
from primexmc.retrieval.codes import GROUP, Codes
from primexmc.retrieval.exact import ExactIndex
from primexmc.retrieval.filtered import Filtered
from primexmc.retrieval.quickest import quickest_precision
from primexmc.retrieval.shortlist import shortlist

PRECISIONS = ["fp32", "bf16", "fp16", "int8"]
L, D, Q = 5000, 24, 13


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def vectors(kind, rng):
    """Labels and queries that are kind or unkind to codes."""
    z, h = unit(rng.standard_normal((L, D))), unit(rng.standard_normal((Q, D)))
    if kind == "near each other":
        z = unit(rng.standard_normal(D) + 0.01 * z)
    elif kind == "an outlier":
        z[77] *= 40
    elif kind == "ever better":  # each block of labels beats all before it
        z = z[np.argsort((z @ h.T).mean(axis=1))]
    elif kind == "all negative":
        z, h = -np.abs(z), np.abs(h)
    elif kind == "zeros":
        z[::3], h[2] = 0, 0
    elif kind == "duplicates":
        z = z[rng.integers(0, L // 4, L)]
    elif kind == "one wide dimension":
        z[:, 0], h[:, 0] = 3 * np.abs(z[:, 0]), 0.1 * h[:, 0]
    return z.astype(np.float32), h.astype(np.float32)


KINDS = ["random", "near each other", "an outlier", "ever better", "all negative", "zeros", "duplicates"]
KINDS += ["one wide dimension"]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_product_is_farther_off_than_the_codes_say(kind, precision):
    z, h = vectors(kind, np.random.default_rng(0))
    codes = Codes.of(torch.from_numpy(z), precision)
    queries = codes.of_queries(torch.from_numpy(h))
    out = torch.empty(Q, len(codes.codes_LD), dtype=codes.product_type)
    codes.products(queries, 0, out)
    off = np.abs(out[:, :L].double().numpy() * queries.unit_B1.double().numpy() - h.astype(float) @ z.astype(float).T)
    assert (off <= queries.error_B1.double().numpy()).all()
    assert len(out[0]) % GROUP == 0 and not out[:, L:].any()
    if kind == "random":  # and they do not say just anything
        assert queries.error_B1.max() < {"fp32": 1e-4, "bf16": 0.01, "fp16": 0.002, "int8": 0.05}[precision]


@pytest.mark.parametrize("with_filter", [False, True])
@pytest.mark.parametrize("top", [1, 10, 100])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_finds_what_a_full_sort_in_float64_finds(kind, precision, top, with_filter, monkeypatch):
    monkeypatch.setattr(preselect, "PRODUCTS_AT_ONCE", 700 * Q)  # several blocks
    rng = np.random.default_rng(top)
    z, h = vectors(kind, rng)
    filtered = csr_matrix(random_array((Q, L), density=0.2, rng=rng)) if with_filter else None
    ids, scores = ExactIndex(torch.from_numpy(z), precision=precision).search(h, top, filtered)
    true = h.astype(float) @ z.astype(float).T
    if filtered is not None:
        true[filtered.nonzero()] = -np.inf
    best = -np.sort(-true, axis=1)[:, :top]
    np.testing.assert_allclose(scores, best, atol=3e-6 * max(1.0, np.abs(z).max()))
    np.testing.assert_allclose(np.take_along_axis(true, ids, axis=1), best, atol=3e-6 * max(1.0, np.abs(z).max()))
    assert all(len(set(row)) == top for row in ids.tolist())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_equal_scores_come_by_rising_id(precision, monkeypatch):
    monkeypatch.setattr(preselect, "PRODUCTS_AT_ONCE", 700)
    z, h = vectors("duplicates", np.random.default_rng(2))
    z, h = np.round(4 * z), np.round(4 * h)  # products are exact, most are tied
    ids, _ = ExactIndex(torch.from_numpy(z), precision=precision).search(h, 50)
    expected = np.argsort(-(h.astype(float) @ z.T), axis=1, kind="stable")[:, :50]
    np.testing.assert_array_equal(ids, expected)


def test_a_query_is_answered_alike_alone_and_in_a_batch():
    z, h = vectors("random", np.random.default_rng(3))
    index = ExactIndex(torch.from_numpy(z), precision="int8")
    ids, scores = index.search(h, 20)
    for row in range(Q):
        one_id, one_score = index.search(h[row : row + 1], 20)
        np.testing.assert_array_equal(one_id[0], ids[row])
        np.testing.assert_array_equal(one_score[0], scores[row])


def test_where_codes_tell_nothing_a_plain_scan_answers():
    z = np.ones((L, D), np.float32)
    h = torch.ones(Q, D)
    index = ExactIndex(torch.from_numpy(z), precision="int8")
    assert preselect.preselect(h, index.z_LD, index.codes(10), 10, Filtered(None)) is None
    assert index.search(h, 10)[0].tolist() == [list(range(10))] * Q


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("cells", [2**27, 64 * Q])
def test_a_shortlist_finds_the_same_or_says_that_it_cannot_prove_it(kind, precision, cells, monkeypatch):
    """What a GPU does, at once and 64 labels at a time; its steps are the same on the CPU."""
    monkeypatch.setattr(shortlist_module, "CELLS_AT_ONCE", cells)
    z, h = (torch.from_numpy(x) for x in vectors(kind, np.random.default_rng(5)))
    filtered = Filtered(csr_matrix(random_array((Q, L), density=0.2, rng=np.random.default_rng(6))))
    found = shortlist(h, z, Codes.of(z, precision), 20, filtered)
    assert found is not None or kind in {"near each other", "duplicates", "an outlier", "zeros"}
    if found is not None:
        true = h.double() @ z.double().T
        true[filtered.rows, filtered.labels] = -torch.inf
        best = true.topk(20, dim=1).values
        torch.testing.assert_close(found[1].double(), best, atol=3e-6, rtol=1e-5)
        torch.testing.assert_close(true.gather(1, found[0]), best, atol=3e-6, rtol=1e-5)


def test_the_best_of_groups_are_the_best_of_all():
    s = torch.randn(5, 32 * 900, generator=torch.Generator().manual_seed(0))
    s[1], s[2, :50] = -torch.inf, torch.inf
    places, scores = shortlist_module._best(s, 12)
    torch.testing.assert_close(scores.sort(dim=1).values, s.topk(12, dim=1).values.sort(dim=1).values)
    torch.testing.assert_close(s.gather(1, places), scores)
    assert all(len(set(row)) == 12 for row in places.tolist())


def test_the_quickest_is_one_of_them_and_asked_once():
    assert quickest_precision(D) in PRECISIONS
    assert quickest_precision(D) is quickest_precision(D)
