"""Lexical scores, votes and candidates against loops; blends to JSON and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.data.tfidf import TfIdf
from primexmc.fusion import candidates
from primexmc.fusion import lexical as lexical_module
from primexmc.fusion.blend import Blend, Weights
from primexmc.fusion.candidates import best_of
from primexmc.fusion.lexical import TEXT_WEIGHT, Lexical
from primexmc.fusion.votes import Votes
from primexmc.retrieval.best_first import best_first

TEXTS = ["red kettle", "blue kettle and red mug", "steel mug", "kettle"]
NUM_LABELS = 6


@pytest.fixture(params=[1, 2**22])
def block_size(request, monkeypatch):
    monkeypatch.setattr(candidates, "CELLS_AT_ONCE", request.param)


@pytest.fixture
def lexical():
    rng = np.random.default_rng(1)
    tfidf = TfIdf(TEXTS)
    weights = rng.standard_normal((len(tfidf.words), NUM_LABELS)) * (rng.random((len(tfidf.words), NUM_LABELS)) < 0.5)
    return Lexical(
        tfidf, csr_matrix(weights.astype(np.float16).astype(np.float32)), -rng.random(NUM_LABELS, np.float32)
    )


@pytest.mark.parametrize("rows_cost", [0.0, np.inf])
def test_lexical_scores(lexical, block_size, rows_cost, monkeypatch):
    """By words and by labels."""
    monkeypatch.setattr(lexical_module, "ROWS_COST", rows_cost)
    ids = np.array([[5, 0, -1], [2, 2, 1], [-1, -1, -1], [3, 4, 0]])
    scores = lexical.scores(TEXTS, ids)
    vectors, weights = lexical.tfidf.vectors(TEXTS).toarray(), lexical.weights_WL.toarray()
    for row, column in np.ndindex(ids.shape):
        label = ids[row, column]
        expected = sum(vectors[row] * weights[:, label]) + lexical.bias_L[label] if label >= 0 else 0
        assert scores[row, column] == pytest.approx(expected, abs=1e-6)


def test_lexical_as_tensors(lexical):
    other = Lexical.from_tensors(lexical.tensors())
    ids = np.tile(np.arange(NUM_LABELS), (len(TEXTS), 1))
    assert np.array_equal(lexical.scores(TEXTS, ids), other.scores(TEXTS, ids))
    assert lexical.tfidf.words == other.tfidf.words


def test_labels_come_and_go(lexical):
    old_of_new = np.array([4, -1, 0])
    scores = lexical.with_labels(old_of_new).scores(TEXTS, np.tile([0, 1, 2], (len(TEXTS), 1)))
    before = lexical.scores(TEXTS, np.tile([4, 0], (len(TEXTS), 1)))
    assert np.array_equal(scores[:, [0, 2]], before)
    assert scores[:, 1] == pytest.approx(lexical.bias_L.mean() / 2)


def test_words_of_labels_that_no_query_has_taught_are_those_of_their_texts(lexical):
    """Against dense tables; the others keep every bit, and what is saved is what speaks."""
    texts = ["a blue kettle", "nothing known", "mug mug red"]
    new = lexical.with_texts(np.array([4, 0, 2]), texts)
    tfidf = lexical.tfidf.vectors(texts).toarray()
    weights, before = new.weights_WL.toarray(), lexical.weights_WL.toarray()
    for row, label in enumerate([4, 0, 2]):
        assert weights[:, label] == pytest.approx(TEXT_WEIGHT * tfidf[row], rel=1e-3)
    assert not weights[:, 0].any()
    assert np.array_equal(weights[:, [1, 3, 5]], before[:, [1, 3, 5]])
    assert np.array_equal(new.bias_L, lexical.bias_L)
    assert np.array_equal(Lexical.from_tensors(new.tensors()).weights_WL.toarray(), weights)
    ids = np.tile([1, 3, 5], (len(TEXTS), 1))
    assert np.array_equal(new.scores(TEXTS, ids), lexical.scores(TEXTS, ids))


def test_compact_leaves_out_small_weights_only(lexical):
    before, after = lexical.weights_WL.toarray(), lexical.compact(0.4).weights_WL.toarray()
    assert np.array_equal(after, np.where(np.abs(before) < 0.4, 0, before))
    assert 0 < (after != 0).sum() < (before != 0).sum()


def test_votes(block_size):
    rng = np.random.default_rng(2)
    h = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((20, 4)).astype(np.float32)), dim=1)
    positives = csr_matrix((rng.random((20, NUM_LABELS)) < 0.3) * 0.5)
    q = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((3, 4)).astype(np.float32)), dim=1).numpy()
    votes = Votes(h, positives, 5)
    ids = np.array([[0, 1, 2, 3], [5, 4, -1, 0], [2, 1, 0, 5]])
    scores = votes.scores(votes.neighbours(q), ids, 0.1)
    for row, column in np.ndindex(ids.shape):
        nearest = sorted(range(20), key=lambda n: -float(q[row] @ h[n].numpy()))[:5]
        shares = {n: math.exp(float(q[row] @ h[n].numpy()) / 0.1) for n in nearest}
        holds = [n for n in nearest if ids[row, column] >= 0 and positives[n, ids[row, column]] > 0]
        assert scores[row, column] == pytest.approx(sum(shares[n] for n in holds) / sum(shares.values()), abs=1e-5)


def test_fewer_training_queries_than_neighbours():
    votes = Votes(torch.eye(2), csr_matrix(np.eye(2)), 100)
    near = votes.neighbours(np.array([[1.0, 0.0]], dtype=np.float32))
    scores = votes.scores(near, np.array([[0, 1]]), 1.0)
    assert scores[0] == pytest.approx([math.e / (math.e + 1), 1 / (math.e + 1)])


@pytest.mark.parametrize("size", [1, 50, 2**23])
def test_products_at_candidates(size, monkeypatch):
    """Both ways against a dense product: many queries, empty rows, ids that are missing."""
    monkeypatch.setattr(candidates, "CELLS_AT_ONCE", size)
    rng = np.random.default_rng(3)
    left, right = (rng.standard_normal(shape) * (rng.random(shape) < 0.2) for shape in ((40, 30), (30, 25)))
    left[[3, 39]], right[:, 7] = 0, 0
    ids = np.stack([rng.permutation(np.concatenate([np.arange(25), [-1, -1]]))[:9] for _ in left])
    expected = np.where(ids >= 0, np.take_along_axis(left @ right, np.maximum(ids, 0), axis=1), 0)
    left, right = csr_matrix(left.astype(np.float32)), csr_matrix(right.astype(np.float32))
    np.testing.assert_allclose(candidates.by_rows(left, right, ids), expected, atol=1e-6)
    np.testing.assert_allclose(candidates.by_columns(left, csr_matrix(right.T), ids), expected, atol=1e-6)
    for ask in (candidates.by_rows, candidates.by_columns):
        assert ask(left[:0], right if ask is candidates.by_rows else csr_matrix(right.T), ids[:0]).shape == (0, 9)


@pytest.mark.parametrize("top", [1, 3, 12, 40])
def test_best_first_is_a_sort_by_score_and_id(top):
    rng = np.random.default_rng(top)
    scores = rng.choice(np.array([0.0, -0.0, 1.5, -1.5, 1e-38, -1e-38, -np.inf, 3e38, -3e38], np.float32), (30, 40))
    scores[10:] = rng.standard_normal((20, 40))
    ids = np.stack([rng.permutation(2**31 - 1 - np.arange(40)) for _ in scores])
    found_ids, found_scores = best_first(ids, scores, top)
    for row in range(len(ids)):
        expected = sorted(zip(-scores[row].astype(float) + 0.0, ids[row].tolist(), strict=True))[:top]
        assert found_ids[row].tolist() == [number for _, number in expected]
        assert found_scores[row].tolist() == [-score for score, _ in expected]
    assert best_first(np.array([[-1, 4]]), np.array([[-np.inf, -np.inf]], np.float32), 2)[0].tolist() == [[4, -1]]


def test_best_of():
    ids = np.array([[7, 3, 9, -1]])
    scores = np.array([[0.5, 0.5, 0.9, -np.inf]], dtype=np.float32)
    assert best_of(ids, scores, 2)[0].tolist() == [[9, 3]]
    more_ids, more_scores = best_of(ids, scores, 6)
    assert more_ids.tolist() == [[9, 3, 7, -1, -1, -1]] and np.isneginf(more_scores[0, 3:]).all()


def test_blend_to_json_and_back():
    blend = Blend({"memory": Weights(0.2, 0, 0.1), "all": Weights(0.1, 0.15, 0.1)}, "all")
    again = Blend.from_dict(blend.to_dict())
    assert again == blend
    assert again.of("auto") == Weights(0.1, 0.15, 0.1) and again.of("theta") == Weights()
    with pytest.raises(ValueError, match="unknown modes"):
        Blend.from_dict({"best": "everything", "weights": {}})
