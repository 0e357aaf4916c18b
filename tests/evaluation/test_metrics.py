"""P, nDCG, PSP, PSnDCG and R against plain loops, and what may come in."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation.slow_metrics import slow_buckets, slow_metrics
from scipy.sparse import csr_array, csr_matrix

from primexmc.data.propensity import inverse_propensity
from primexmc.errors import UserError
from primexmc.evaluation.buckets import BucketMetrics, frequency_buckets
from primexmc.evaluation.hits import find_hits, label_counts
from primexmc.evaluation.metrics import RankingMetrics, metrics


def random_case(seed, num_queries=60, num_labels=40, depth=12):
    """Predictions with repeats and holes; rows without labels; labels that were never trained."""
    rng = np.random.default_rng(seed)
    popularity = rng.pareto(1.0, num_labels) + 0.05
    popularity[rng.random(num_labels) < 0.2] = 0  # never trained
    train = [draw(rng, popularity, rng.integers(0, 6)) for _ in range(80)]
    true = [draw(rng, popularity + 0.2, rng.integers(0, 8)) for _ in range(num_queries)]
    pred = rng.integers(-1, num_labels, (num_queries, depth))
    for row, labels in zip(pred, true, strict=True):  # some right ones, so that there is something to measure
        for label in labels:
            if rng.random() < 0.7:
                row[rng.integers(0, depth)] = label
    return pred, true, train


def draw(rng, popularity, size):
    size = min(int(size), int(np.count_nonzero(popularity)))
    return set(rng.choice(len(popularity), size, replace=False, p=popularity / popularity.sum()).tolist())


def to_csr(rows, num_labels):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = [label for row in rows for label in row]
    return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), num_labels))


def assert_equal_scores(ours, expected):
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        assert ours[name] == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.6, 2.6)])
def test_metrics_equal_plain_loops(seed, a, b):
    pred, true, train = random_case(seed)
    ours = metrics(pred, to_csr(true, 40), to_csr(train, 40), a, b)
    assert ours["P@1"] > 5
    assert_equal_scores(ours, slow_metrics(pred.tolist(), true, train, 40, a, b, shallow=True))


@pytest.mark.parametrize("depth", [1, 2, 4, 10, 40])
def test_short_predictions_are_filled_with_none(depth):
    pred, true, train = random_case(3, depth=depth)
    ours = metrics(pred, to_csr(true, 40), to_csr(train, 40))
    assert_equal_scores(ours, slow_metrics(pred.tolist(), true, train, 40, shallow=True))
    ranking = RankingMetrics(np.ones(40))
    ranking.update(pred, to_csr(true, 40))
    assert ("R@10" in ranking.result(), "R@100" in ranking.result()) == (depth >= 10, depth >= 40)


def test_streaming_equals_one_go():
    pred, true, train = random_case(5)
    true_csr, train_csr = to_csr(true, 40), to_csr(train, 40)
    ranking = RankingMetrics(inverse_propensity(label_counts(train_csr), len(train), 0.55, 1.5), shallow=True)
    for rows in (slice(0, 1), slice(1, 1), slice(1, 37), slice(37, 60)):
        ranking.update(pred[rows], true_csr[rows])
    assert_equal_scores(ranking.result(), metrics(pred, true_csr, train_csr))


def test_a_hand_made_case():
    """Two queries; label 0 is right at rank 2 of the first, nothing is right in the second."""
    true, train = csr_matrix([[1.0, 1, 0], [0, 0, 1]]), csr_matrix([[1.0, 0, 0]] * 3)
    ours = metrics([[2, 0], [0, 1]], true, train, ks=(1, 2))
    weights = [float(1 + (np.log(3) - 1) * 2.5**0.55 * (n + 1.5) ** -0.55) for n in (3, 0, 0)]
    assert ours["P@1"] == 0
    assert ours["P@2"] == pytest.approx(25)
    second = 1 / np.log2(3)
    assert ours["nDCG@2"] == pytest.approx(100 * second / (1 + second) / 2)
    assert ours["PSP@2"] == pytest.approx(100 * weights[0] / sum(weights))


def test_only_positive_relevance_counts():
    """Explicit zeros and negative relevance are no positives, in truth and in training; a graded one is."""
    true = csr_matrix(([0.0, 3.0, -1.0], [0, 1, 2], [0, 3]), shape=(1, 4))
    train = csr_matrix(([0.0, 2.0, 1.0], [0, 1, 1], [0, 1, 2, 3]), shape=(3, 4))
    clean_true, clean_train = csr_matrix([[0, 1, 0, 0]]), csr_matrix([[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]])
    pred = [[0, 2, 1]]
    assert_equal_scores(metrics(pred, true, train), metrics(pred, clean_true, clean_train))
    assert metrics(pred, true, train)["P@3"] == pytest.approx(100 / 3)
    assert true.nnz == 3, "the caller's matrix is left alone"


def test_unsorted_and_repeated_entries_are_understood():
    true = csr_matrix(([1.0, 1.0, 1.0], [3, 0, 3], [0, 3]), shape=(1, 4))
    train = csr_matrix(np.eye(4))
    assert metrics([[3, 0, 1]], true, train)["P@3"] == pytest.approx(200 / 3)
    assert metrics([[3, 0, 1]], csr_array(true), csr_array(train))["P@1"] == pytest.approx(100)


def test_nothing_right_and_nothing_true_are_zeros():
    train = csr_matrix(np.eye(6))
    empty = csr_matrix((2, 6))
    assert set(metrics([[0, 1, 2, 3, 4, 5]] * 2, empty, train).values()) == {0.0}
    assert set(metrics(np.full((2, 6), -1), csr_matrix(np.eye(6)[:2]), train).values()) == {0.0}
    assert metrics(np.empty((2, 0), np.int64), csr_matrix(np.eye(6)[:2]), train)["P@1"] == 0.0


@pytest.mark.parametrize(
    ("pred", "words"),
    [
        ([[4]], "4 is out of range"),
        ([[-2]], "-2 is out of range"),
        ([[0], [1]], "1 queries"),
        ([0], "shape"),
        ([[0.5]], "whole numbers"),
    ],
)
def test_wrong_predictions_are_refused(pred, words):
    with pytest.raises(UserError, match=words):
        metrics(pred, csr_matrix([[1, 0, 0, 0]]), csr_matrix(np.eye(4)))


def test_matrices_that_disagree_are_refused():
    with pytest.raises(UserError, match="3 labels"):
        metrics([[0]], csr_matrix([[1, 0, 0]]), csr_matrix(np.eye(4)))
    with pytest.raises(UserError, match="no query"):
        metrics(np.empty((0, 5), np.int64), csr_matrix((0, 4)), csr_matrix(np.eye(4)))


@pytest.mark.parametrize("seed", range(8))
def test_buckets_equal_plain_loops(seed):
    pred, true, train = random_case(seed)
    counts = label_counts(to_csr(train, 40))
    ours = BucketMetrics(frequency_buckets(counts))
    for rows in (slice(0, 20), slice(20, 60)):
        ours.update_hits(find_hits(pred[rows], to_csr(true, 40)[rows]))
    expected = slow_buckets(pred.tolist(), true, counts.tolist())
    for name, scores in ours.result().items():
        assert_equal_scores(scores, expected[name])
    whole = metrics(pred, to_csr(true, 40), to_csr(train, 40))
    for k in (1, 3, 5):
        assert sum(scores[f"P@{k}"] for scores in ours.result().values()) == pytest.approx(whole[f"P@{k}"])


def test_buckets_share_the_positives_equally():
    assert frequency_buckets([10, 10, 10]).tolist() == [0, 1, 2]
    assert frequency_buckets([1, 6, 2, 3, 0]).tolist() == [2, 0, 2, 1, 2]
    assert frequency_buckets([0, 0]).tolist() == [2, 2]
    assert frequency_buckets([]).tolist() == []
    counts = np.random.default_rng(0).zipf(1.7, 3000)
    counts[counts > 300] = 300
    shares = np.bincount(frequency_buckets(counts), weights=counts) / counts.sum()
    assert np.all(np.abs(shares - 1 / 3) < 0.03)
