"""Where a batch's further label columns come from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from primexmc.config import SamplingSettings
from primexmc.errors import UserError
from primexmc.sampling import batch_labels, label_source, query_batches
from primexmc.sampling.negatives import Mined

QUERIES = np.array([2, 0, 5])


def source(**values):
    return label_source(csr_matrix((6, 50)), SamplingSettings(**values))


def draws(source, num=200):
    return [source.draw(QUERIES, np.random.default_rng(seed)) for seed in range(num)]


def test_none_besides_the_batch():
    assert source().draw(QUERIES, np.random.default_rng(0)).size == 0


def test_a_pool_is_drawn_anew_each_label_alike():
    pools = draws(source(negatives="pool", pool_size=20))
    assert all(len(set(pool.tolist())) == 20 for pool in pools), "each once"
    counts = np.bincount(np.concatenate(pools), minlength=50)
    assert counts.min() > 50 and counts.max() < 115, "80 expected"
    assert sorted(source(negatives="pool", pool_size=4096).draw(QUERIES, np.random.default_rng(0))) == list(range(50))


def test_all_of_them():
    assert source(negatives="all").draw(QUERIES, np.random.default_rng(0)).tolist() == list(range(50))


def test_mined_ones_come_from_the_querys_own_row():
    mined = source(negatives="mined", mined_per_query=3)
    assert isinstance(mined, Mined) and mined.draw(QUERIES, np.random.default_rng(0)).size == 0, "no search yet"
    mined.table_NK = np.arange(24).reshape(6, 4)
    seen = [set(), set(), set()]
    for drawn in draws(mined):
        assert drawn.shape == (3, 3)
        for row, labels in enumerate(drawn.tolist()):
            seen[row] |= set(labels)
    assert seen == [{8, 9, 10, 11}, {0, 1, 2, 3}, {20, 21, 22, 23}]


def test_a_batchs_columns_are_what_was_drawn_each_once():
    assert batch_labels(np.array([[3, -1], [7, 3]]), np.array([9, 7, -1]), np.zeros(0, np.int64)).tolist() == [3, 7, 9]


def test_batches_at_random_ignore_the_clusters():
    clusters = np.repeat(np.arange(10), 10)
    for name, alike in (("ngame", True), ("random", False)):
        batches = query_batches(SamplingSettings(batches=name), 100, 10, np.random.default_rng(0), clusters)
        assert [len(batch) for batch in batches] == [10] * 10
        assert all(len(set(clusters[batch])) == 1 for batch in batches) is alike


def test_a_name_that_is_none():
    with pytest.raises(UserError, match=r"sampling\.negatives is nothing:here"):
        source(negatives="nothing:here")
