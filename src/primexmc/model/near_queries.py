"""The training queries nearest to a text, with and without a label: precedents for what a model says.

Shapes: N training queries, B of a block, D dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from .memory import Memory

ROWS_PER_BLOCK = 65_536


class NearQuery(NamedTuple):
    """A training query, its cosine with the text, its labels, whether the label in question is one of them, and what
    its vote adds to the score."""

    text: str
    score: float
    label_ids: list[int]
    has_label: bool
    adds: float


def near_queries(
    memory: Memory, h_D: Tensor, label: int, top: int, votes: Mapping[int, float]
) -> tuple[list[NearQuery], list[NearQuery]]:
    """The nearest of all training queries, and the nearest of those with the label; best first, ties by row."""
    starts = range(0, len(memory), ROWS_PER_BLOCK)
    s_N = np.concatenate([_scores(memory.h_ND[start : start + ROWS_PER_BLOCK], h_D.cpu()) for start in starts])
    with_label = _queries_with(memory, label)
    of_all = np.argsort(-s_N, kind="stable")[:top]
    of_label = with_label[np.argsort(-s_N[with_label], kind="stable")[:top]]
    found = [[_near(memory, s_N, int(row), label, votes) for row in rows] for rows in (of_all, of_label)]
    return found[0], found[1]


def _scores(block_BD: Tensor, h_D: Tensor) -> npt.NDArray[np.float32]:
    scores: npt.NDArray[np.float32] = (block_BD.float() @ h_D.float()).numpy()
    return scores


def _queries_with(memory: Memory, label: int) -> npt.NDArray[np.int64]:
    places = np.flatnonzero(memory.positives.indices == label)
    rows: npt.NDArray[np.int64] = np.searchsorted(memory.positives.indptr, places, side="right") - 1
    return rows


def _near(memory: Memory, s_N: npt.NDArray[np.float32], row: int, label: int, votes: Mapping[int, float]) -> NearQuery:
    start, stop = memory.positives.indptr[row], memory.positives.indptr[row + 1]
    label_ids = memory.positives.indices[start:stop].tolist()
    adds = votes.get(row, 0.0)
    return NearQuery(memory.texts[row], float(s_N[row]), label_ids, label in label_ids, adds)
