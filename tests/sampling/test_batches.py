"""Batches: every query once, neighbours together, clusters that grow on schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primexmc.config import SamplingSettings
from primexmc.sampling import cluster_size, ngame_batches


@given(st.integers(0, 400), st.integers(1, 90), st.booleans(), st.integers(0, 10))
def test_every_query_once_in_batches_of_nearly_equal_size(num_queries, batch_size, clustered, seed):
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 20, num_queries) if clustered else None
    batches = ngame_batches(num_queries, batch_size, rng, cluster_of_N=cluster)
    sizes = [len(batch) for batch in batches]
    assert sorted(query for batch in batches for query in batch.tolist()) == list(range(num_queries))
    assert len(batches) == -(-num_queries // batch_size)
    assert not sizes or (max(sizes) <= batch_size and max(sizes) - min(sizes) <= 1)


@pytest.mark.parametrize(("num_queries", "batch_size"), [(1601, 1600), (4801, 1600), (7, 3), (101, 10)])
def test_no_query_is_left_alone(num_queries, batch_size):
    assert min(len(batch) for batch in ngame_batches(num_queries, batch_size, np.random.default_rng(0))) > 1


def test_clusters_stay_together():
    """Within the whole order, a cluster's queries are neighbours; which clusters meet changes from epoch to epoch."""
    rng = np.random.default_rng(0)
    cluster = rng.permutation(np.repeat(np.arange(30), 8))
    epochs = []
    for _ in range(2):
        order = cluster[np.concatenate(ngame_batches(240, 64, rng, cluster_of_N=cluster))]
        assert [len(set(order[start : start + 8])) for start in range(0, 240, 8)] == [1] * 30
        epochs.append(order[::8].tolist())
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(30))


def test_random_batches_differ_between_epochs():
    rng = np.random.default_rng(0)
    first, second = (np.concatenate(ngame_batches(100, 10, rng)).tolist() for _ in range(2))
    assert first != second


def test_same_seed_same_batches():
    cluster = np.arange(100) // 4
    first, second = (
        np.concatenate(ngame_batches(100, 16, np.random.default_rng(3), cluster_of_N=cluster)) for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_clusters_of_other_queries():
    with pytest.raises(ValueError, match="3 cluster numbers for 4 queries"):
        ngame_batches(4, 2, np.random.default_rng(0), cluster_of_N=np.zeros(3, dtype=np.int64))


def test_the_papers_schedule():
    """300 epochs: from 4, doubled at epochs 10, 25, 50, 75, 100, 125, 150 and 200, to 1024."""
    expected, size = {}, 4
    for epoch in range(300):
        size *= 2 if epoch in (10, 25, 50, 75, 100, 125, 150, 200) else 1
        expected[epoch] = size
    assert expected[299] == 1024
    assert {epoch: cluster_size(epoch / 300, SamplingSettings()) for epoch in range(300)} == expected


def test_the_largest_size_ends_the_growth():
    settings = SamplingSettings(smallest_cluster=3, largest_cluster=20, growth=(0.1, 0.2, 0.3, 0.4))
    assert [cluster_size(share, settings) for share in (0.0, 0.1, 0.25, 0.3, 0.9, 1.0)] == [3, 6, 12, 20, 20, 20]
