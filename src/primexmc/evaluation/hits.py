"""Which predictions are right, and at which rank: the one question that all metrics share.

Shapes: Q queries, K predictions a query (best first), H hits (predictions that are right).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from ..errors import UserError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Right predictions as three parallel arrays, and the positives they are counted against."""

    rows_H: IntArray
    ranks_H: IntArray  # 0 = best
    labels_H: IntArray
    true_rows_T: IntArray  # row and label of every positive, in row order
    true_labels_T: IntArray
    num_positives_Q: IntArray
    num_ranks: int  # K: how deep the predictions go


def find_hits(pred_ids: ArrayLike, true_csr: Any) -> Hits:
    """Look up every prediction among its row's positives. A repeated id counts at its first rank only."""
    true_csr = positives_only(true_csr)
    num_queries, num_labels = true_csr.shape
    pred_QK = _checked(pred_ids, num_queries, num_labels)
    num_positives_Q = np.diff(true_csr.indptr).astype(np.int64)
    true_rows_T = np.repeat(np.arange(num_queries, dtype=np.int64), num_positives_Q)
    true_labels_T = true_csr.indices.astype(np.int64)
    at_H, labels_H = _lookup(pred_QK, true_rows_T * num_labels + true_labels_T, num_labels)
    rows_H, ranks_H = np.divmod(at_H, max(1, pred_QK.shape[1]))
    return Hits(rows_H, ranks_H, labels_H, true_rows_T, true_labels_T, num_positives_Q, pred_QK.shape[1])


def positives_only(matrix: Any) -> csr_matrix:
    """A canonical copy that stores only relevance above 0: sorted indices, no duplicates, no explicit zeros."""
    clean = csr_matrix(matrix, copy=True)
    clean.sum_duplicates()
    clean.data = np.asarray(clean.data > 0, dtype=np.float32)
    clean.eliminate_zeros()
    return clean


def label_counts(train_csr: Any) -> IntArray:
    """n_l: training queries of each label."""
    clean = positives_only(train_csr)
    return np.bincount(clean.indices, minlength=clean.shape[1]).astype(np.int64)


def _checked(pred_ids: ArrayLike, num_queries: int, num_labels: int) -> IntArray:
    pred_QK = np.asarray(pred_ids)
    if pred_QK.ndim != 2 or pred_QK.shape[0] != num_queries:
        raise UserError(f"Predictions of shape {pred_QK.shape} for {num_queries} queries; expected ({num_queries}, k).")
    if pred_QK.size and not np.issubdtype(pred_QK.dtype, np.integer):
        raise UserError(f"Predictions are label ids, whole numbers; these are {pred_QK.dtype}.")
    if pred_QK.size and (pred_QK.min() < -1 or pred_QK.max() >= num_labels):
        worst = int(pred_QK.min()) if pred_QK.min() < -1 else int(pred_QK.max())
        raise UserError(
            f"Predicted label id {worst} is out of range: ids go from 0 to {num_labels - 1}, and -1 is none."
        )
    return pred_QK.astype(np.int64, copy=False)


def _lookup(pred_QK: IntArray, true_keys_T: IntArray, num_labels: int) -> tuple[IntArray, IntArray]:
    """Flat positions and labels of the hits. Keys (row * L + label) are sorted and unique on the true side."""
    rows_Q1 = np.arange(len(pred_QK), dtype=np.int64)[:, None]
    keys = np.where(pred_QK >= 0, rows_Q1 * num_labels + pred_QK, -1).ravel()
    if not len(true_keys_T):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    nearest = np.minimum(np.searchsorted(true_keys_T, keys), len(true_keys_T) - 1)
    at_H = np.flatnonzero(true_keys_T[nearest] == keys)
    _, first = np.unique(keys[at_H], return_index=True)
    at_H = np.sort(at_H[first])
    return at_H, keys[at_H] % num_labels
