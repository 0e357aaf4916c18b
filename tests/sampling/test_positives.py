"""Drawn positives: the right labels, in the right proportion; and what is true in a batch, against loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from primexmc.data.propensity import inverse_propensity
from primexmc.sampling import PositiveSampler, batch_labels, batch_positives


def corpus(seed=0, num_queries=40, num_labels=25, density=0.15):
    rng = np.random.default_rng(seed)
    dense = (rng.random((num_queries, num_labels)) < density).astype(np.float32)
    dense[3], dense[0], dense[-1] = 0, 0, 0  # queries without labels, the first and the last among them
    return csr_matrix(dense), dense


def assert_frequencies(drawn, expected):
    """`expected[label]` probabilities; every count within 5 standard deviations."""
    total = drawn.size
    for label, chance in enumerate(expected):
        assert abs((drawn == label).sum() - total * chance) <= 5 * np.sqrt(total * chance * (1 - chance))


@pytest.mark.parametrize("rare", [True, False])
def test_frequencies_are_the_weights(rare):
    positives, dense = corpus()
    counts = dense.sum(0)
    weights = inverse_propensity(counts, len(dense), 0.55, 1.5) if rare else np.ones(dense.shape[1])
    sampler, rng = PositiveSampler(positives, weights, 4), np.random.default_rng(1)
    for query in (1, 5, 17, 30):
        expected = dense[query] * weights
        drawn = sampler.draw(np.full(5000, query), rng)
        assert drawn.shape == (5000, 4)
        assert_frequencies(drawn, expected / expected.sum())


def test_weights_of_very_different_size():
    """A weight of 1 beside one of a million, after rows of ten millions: neither rounding nor neighbours matter."""
    positives = csr_matrix(np.array([[1, 1, 1, 0], [1, 0, 0, 1]], dtype=np.float32))
    sampler = PositiveSampler(positives, np.array([1.0, 1e7, 1e7, 1e6]), 1)
    drawn = sampler.draw(np.full(200_000, 1), np.random.default_rng(0))
    assert set(np.unique(drawn)) <= {0, 3}
    assert sampler.draw(np.array([0]), np.random.default_rng(0)).item() in (0, 1, 2)


def test_every_draw_is_a_label_of_its_query_and_unlabelled_rows_give_none():
    positives, dense = corpus(2)
    sampler, rng = PositiveSampler(positives, np.ones(dense.shape[1]), 3), np.random.default_rng(0)
    for _ in range(50):
        queries = rng.permutation(len(dense))
        for query, row in zip(queries, sampler.draw(queries, rng), strict=True):
            assert all(dense[query, label] == 1 for label in row) if dense[query].any() else set(row) == {-1}


def test_a_corpus_without_any_label():
    sampler = PositiveSampler(csr_matrix((3, 5), dtype=np.float32), np.ones(5), 2)
    drawn = sampler.draw(np.array([2, 0]), np.random.default_rng(0))
    assert drawn.tolist() == [[-1, -1], [-1, -1]]
    assert batch_labels(drawn).tolist() == []


def test_same_seed_same_draw():
    positives, dense = corpus()
    sampler = PositiveSampler(positives, np.ones(dense.shape[1]), 2)
    first, second = (sampler.draw(np.arange(40), np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(("weights", "draws"), [(np.ones(4), 1), (np.ones(25), 0), (np.zeros(25), 1)])
def test_senseless_arguments(weights, draws):
    with pytest.raises(ValueError, match="weight"):
        PositiveSampler(corpus()[0], weights, draws)


def test_batch_labels_are_each_once_and_ascending():
    assert batch_labels(np.array([[7, 2], [-1, -1], [2, 2], [0, 9]])).tolist() == [0, 2, 7, 9]


@pytest.mark.parametrize("seed", range(5))
def test_batch_positives_against_all_labels_of_the_queries(seed):
    """By loops: a label that another query drew is a positive, not a negative, of every query that has it."""
    positives, dense = corpus(seed, density=0.4)
    rng = np.random.default_rng(seed)
    queries = rng.choice(len(dense), 15, replace=seed % 2 == 0)
    labels = batch_labels(PositiveSampler(positives, np.ones(25), 1).draw(queries, rng))
    batch = batch_positives(positives, queries, labels)
    expected = [[dense[query, label] for label in labels] for query in queries]
    assert batch.shape == (15, len(labels))
    assert batch.toarray().tolist() == expected
    assert batch.has_canonical_format
    assert set(batch.data.tolist()) <= {1.0}


def test_empty_batches():
    positives, _ = corpus()
    assert batch_positives(positives, np.arange(4), np.array([], dtype=np.int64)).shape == (4, 0)
    assert batch_positives(positives, np.array([], dtype=np.int64), np.arange(3)).shape == (0, 3)
    assert batch_positives(positives, np.array([0, 3]), np.arange(25)).nnz == 0


def test_relevance_values_do_not_matter():
    graded = csr_matrix(random_array((10, 8), density=0.5, rng=np.random.default_rng(0)))
    batch = batch_positives(graded, np.arange(10), np.arange(8))
    assert np.array_equal(batch.toarray(), graded.toarray() > 0)
