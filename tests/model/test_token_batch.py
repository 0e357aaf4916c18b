"""Texts as one flat row of ids, and back to rectangles."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import batch_of_rows

ROWS = [[5, 6, 7], [], [8], [9, 10, 11, 12, 13], [14, 15]]


def test_lengths_and_starts():
    batch = batch_of_rows(ROWS)
    assert len(batch) == 5 and batch.lengths.tolist() == [3, 0, 1, 5, 2]
    assert batch.start_B().tolist() == [0, 3, 3, 4, 9] and batch.length_B().tolist() == [3, 0, 1, 5, 2]
    assert batch.ids_T.dtype == torch.int64


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [4, 0], [1, 2], [3], [1]])
def test_padded(rows):
    ids, mask = batch_of_rows(ROWS).padded(np.array(rows), pad_id=99)
    width = max(1, *(len(ROWS[row]) for row in rows))
    assert ids.shape == mask.shape == (len(rows), width)
    for at, row in enumerate(rows):
        missing = width - len(ROWS[row])
        assert ids[at].tolist() == ROWS[row] + [99] * missing
        assert mask[at].tolist() == [True] * len(ROWS[row]) + [False] * missing


def test_padded_without_any_token():
    ids, mask = batch_of_rows([[], []]).padded(np.array([0, 1]), pad_id=7)
    assert ids.tolist() == [[7], [7]] and mask.tolist() == [[False], [False]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("tokens_per_group", "max_groups"), [(1, 1000), (20, 1000), (20, 3), (10**9, 8)])
def test_groups_hold_every_row_once_from_short_to_long(seed, tokens_per_group, max_groups):
    rng = np.random.default_rng(seed)
    rows = [[1] * length for length in rng.integers(0, 12, 40)]
    groups = list(batch_of_rows(rows).groups_by_length(tokens_per_group, max_groups))
    assert sorted(np.concatenate(groups).tolist()) == list(range(40))
    assert 1 <= len(groups) <= max_groups and all(len(group) for group in groups)
    lengths = [len(rows[row]) for group in groups for row in group]
    assert lengths == sorted(lengths)
    if tokens_per_group == 20:
        wanted = min(max_groups, round(sum(lengths) / 20))
        assert abs(len(groups) - wanted) <= 1
        average = sum(lengths) / wanted
        assert max(sum(len(rows[row]) for row in group) for group in groups) <= average + 12, "of about equal size"


def test_groups_of_nothing_and_of_empty_texts():
    assert list(batch_of_rows([]).groups_by_length(10, 8)) == []
    assert np.concatenate(list(batch_of_rows([[], []]).groups_by_length(10, 8))).tolist() == [0, 1]
