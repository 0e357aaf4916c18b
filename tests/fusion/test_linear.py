"""The sparse linear classifiers, each label by itself and with dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from primexmc.fusion import linear
from primexmc.fusion.linear import fit_linear

NUM_QUERIES, NUM_WORDS, NUM_LABELS = 40, 12, 5


@pytest.fixture
def problem():
    """Random texts, true labels, and wrong labels of which some are true ones by mistake. Label 4 has no query."""
    rng = np.random.default_rng(0)
    x = rng.random((NUM_QUERIES, NUM_WORDS)) * (rng.random((NUM_QUERIES, NUM_WORDS)) < 0.3)
    true = rng.random((NUM_QUERIES, NUM_LABELS)) < 0.3
    true[:, 4] = False
    wrong = rng.random((NUM_QUERIES, NUM_LABELS)) < 0.5
    return x, true, wrong


def slowly(x, true, wrong, label, strength):
    """One label's problem in full: words that none of its queries has keep weight 0."""
    free = np.append((x[true[:, label]] > 0).any(0), True)
    design = np.column_stack([x, np.ones(len(x))])
    signs = dict.fromkeys(np.flatnonzero(true[:, label]), 1)
    signs = dict.fromkeys(np.flatnonzero(wrong[:, label]), -1) | signs

    def objective(w):
        w = w * free
        losses = [max(0, 1 - sign * (design[row] @ w)) ** 2 for row, sign in signs.items()]
        return 0.5 * w @ w + strength * sum(losses)

    found = minimize(objective, np.zeros(NUM_WORDS + 1), method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    return found.x[:-1] * free[:-1], found.x[-1]


@pytest.mark.parametrize(("strength", "entries_at_once", "threads"), [(0.3, 1, 3), (2.0, 200, 2), (2.0, 10**6, 1)])
def test_as_each_label_by_itself(problem, strength, entries_at_once, threads, monkeypatch):
    x, true, wrong = problem
    monkeypatch.setattr(linear, "ENTRIES_AT_ONCE", entries_at_once)
    weights, bias = fit_linear(
        csr_matrix(x.astype(np.float32)),
        csr_matrix(true.astype(np.float32)),
        csr_matrix(wrong.astype(np.float32)),
        strength=strength,
        iterations=500,
        threads=threads,
    )
    for label in range(NUM_LABELS):
        expected, expected_bias = slowly(x, true, wrong, label, strength)
        np.testing.assert_allclose(weights.toarray()[:, label], expected, atol=2e-3)
        assert bias[label] == pytest.approx(expected_bias, abs=2e-3)


def test_the_number_of_threads_changes_nothing(problem, monkeypatch):
    monkeypatch.setattr(linear, "ENTRIES_AT_ONCE", 100)
    matrices = [csr_matrix(part.astype(np.float32)) for part in problem]
    one, other = fit_linear(*matrices, threads=1), fit_linear(*matrices, threads=4)
    assert (one[0] != other[0]).nnz == 0 and np.array_equal(one[1], other[1])


def test_relevance_counts_as_true_and_matrices_stay_as_they_are(problem):
    x, true, wrong = (csr_matrix(part.astype(np.float32)) for part in problem)
    graded = true.copy()
    graded.data *= 0.25
    before = [part.copy() for part in (x, graded, wrong)]
    one, other = fit_linear(x, true, wrong), fit_linear(x, graded, wrong)
    assert (one[0] != other[0]).nnz == 0 and np.array_equal(one[1], other[1])
    assert all((part != old).nnz == 0 for part, old in zip((x, graded, wrong), before, strict=True))


def test_without_words_only_biases_are_left(problem):
    _, true, wrong = problem
    weights, bias = fit_linear(
        csr_matrix((NUM_QUERIES, 0), dtype=np.float32), csr_matrix(true * 1.0), csr_matrix(wrong * 1.0), iterations=200
    )
    assert weights.shape == (0, NUM_LABELS)
    assert bias[4] < -0.5
