"""Which labels a batch meets: some positives of each query, drawn by weight, and all that is true among them.

Shapes: L labels, Q queries of the batch, M labels of the batch, n draws a query, E true pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..config import SamplingSettings
from ..data.ragged import ragged_take
from ..own_code import own

Ints = NDArray[np.int64]


class PositiveSampler:
    """Draws `num_draws` of each query's labels, with replacement, with probability proportional to their weights."""

    def __init__(self, positives: csr_matrix, weights_L: NDArray[Any], num_draws: int) -> None:
        if num_draws < 1 or len(weights_L) != positives.shape[1]:
            raise ValueError(
                f"expected num_draws >= 1 and {positives.shape[1]} weights, not {num_draws} and {len(weights_L)}"
            )
        weight_E = np.asarray(weights_L, dtype=np.float64)[positives.indices]
        if not np.all(weight_E > 0):
            raise ValueError("every label that a query has needs a weight above 0")
        self._start, self._end = positives.indptr[:-1].astype(np.int64), positives.indptr[1:].astype(np.int64)
        self._labels = positives.indices
        self._cumulative = np.concatenate([[0.0], weight_E.cumsum()])  # one line for all rows: a draw is one search
        self.num_draws = num_draws

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        """Q x n label ids; -1 in the row of a query without labels."""
        start_Q1, end_Q1 = self._start[queries][:, None], self._end[queries][:, None]
        low_Q1, high_Q1 = self._cumulative[start_Q1], self._cumulative[end_Q1]
        aim_Qn = low_Q1 + rng.random((len(queries), self.num_draws)) * (high_Q1 - low_Q1)
        found_Qn = np.searchsorted(self._cumulative, aim_Qn, side="right") - 1
        found_Qn = np.clip(found_Qn, start_Q1, end_Q1 - 1)  # rounding must not reach into another query's labels
        if len(self._labels) == 0:
            return np.full(found_Qn.shape, -1, dtype=np.int64)
        return np.where(end_Q1 > start_Q1, self._labels[found_Qn], -1).astype(np.int64)


def label_weights(
    positives: csr_matrix, inverse_propensity_L: NDArray[Any], settings: SamplingSettings
) -> NDArray[Any]:
    """What `sampling.positives` names; one's own function gets the same three and gives a weight above 0 a label."""
    if settings.positives == "propensity":
        return inverse_propensity_L
    if settings.positives == "uniform":
        return np.ones(positives.shape[1])
    weights_L: NDArray[Any] = own(settings.positives, "sampling.positives")(positives, inverse_propensity_L, settings)
    return weights_L


def batch_labels(*drawn: Ints) -> Ints:
    """The label columns of a batch: what was drawn, each once, ascending."""
    labels_M = np.unique(np.concatenate([labels.ravel() for labels in drawn]))
    return labels_M[labels_M >= 0]


def batch_positives(positives: csr_matrix, queries: Ints, labels_M: Ints) -> csr_matrix:
    """Q x M: which of the batch's labels are true, judged against ALL labels of a query, not only the drawn ones."""
    indptr: Any = positives.indptr  # int32 or int64, whichever scipy chose
    label_E, offsets = ragged_take(positives.indices, indptr, queries)
    column_of_L = np.zeros(positives.shape[1], dtype=np.int32)  # 1 + column, 0 where the label is not in the batch
    column_of_L[labels_M] = np.arange(1, len(labels_M) + 1)
    column_E = column_of_L[label_E]
    row_E = np.repeat(np.arange(len(queries)), np.diff(offsets))
    kept = column_E > 0
    row_E, column_E = row_E[kept], column_E[kept] - 1
    indptr = np.concatenate([[0], np.bincount(row_E, minlength=len(queries)).cumsum()])
    ones_E = np.ones(len(row_E), dtype=np.float32)
    return csr_matrix((ones_E, column_E, indptr), shape=(len(queries), len(labels_M)))
