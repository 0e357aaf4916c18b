"""Candidates: the labels that the prototypes propose, which the other voices then judge.

A sparse product left @ right is wanted at the candidates alone. `by_columns` goes through the columns of the
candidates, `by_rows` through the rows of `right` that `left` names: the fewer entries they meet, the quicker.

Shapes: Q queries, W words (or training queries), L labels, C candidates a query, K answers a query; B queries of a
block, T entries met on the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..retrieval.best_first import best_first

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
CELLS_AT_ONCE = 2**23  # of the tables in which entries are looked up, one query after the other


def by_columns(left_QW: csr_matrix, right_LW: csr_matrix, ids_QC: Ids) -> Floats:
    """The entries of left @ right.T at each row's candidates, 0 where the id is -1."""
    (L, W), C = right_LW.shape, ids_QC.shape[1]
    found_QC = np.zeros(ids_QC.shape, dtype=np.float32)
    size = max(1, min(len(ids_QC), CELLS_AT_ONCE // max(1, W, C * right_LW.nnz // max(1, L))))
    left_R = np.zeros(size * W, dtype=np.float32)  # rows of `left`, one after the other
    for start in range(0, len(ids_QC) if right_LW.nnz else 0, size):
        left_BW, ids_BC = _some(left_QW, start, size), ids_QC[start : start + size]
        cells_T = left_BW.indices + _row_starts(left_BW, W)
        left_R[cells_T] = left_BW.data
        columns = right_LW[np.maximum(ids_BC, 0).ravel()]
        per_query_B = np.diff(columns.indptr[:: max(1, C)])
        at_T = columns.indices + np.repeat(np.arange(len(ids_BC), dtype=np.int32) * np.int32(W), per_query_B)
        products = csr_matrix((columns.data, at_T, columns.indptr), shape=(ids_BC.size, len(left_R))) @ left_R
        found_QC[start : start + size] = np.where(ids_BC >= 0, products.reshape(ids_BC.shape), 0)
        left_R[cells_T] = 0
    return found_QC


def by_rows(left_QW: csr_matrix, right_WL: csr_matrix, ids_QC: Ids) -> Floats:
    """The entries of left @ right at each row's candidates, 0 where the id is -1."""
    return by_rows_and_first(left_QW, right_WL, ids_QC)[0]


def by_rows_and_first(left_QW: csr_matrix, right_WL: csr_matrix, ids_QC: Ids) -> tuple[Floats, Ids]:
    """The same, and beside each sum the number of the entry of `left` that is first in it, -1 where none is."""
    L = right_WL.shape[1]
    found_QC, first_QC = np.zeros(ids_QC.shape, dtype=np.float32), np.full(ids_QC.shape, -1)
    size = max(1, min(len(ids_QC), CELLS_AT_ONCE // max(1, L)))
    place_R = np.zeros(size * L + 1, dtype=np.int32)  # of each pair of query and label among the sums; 0: none
    for start in range(0, len(ids_QC), size):
        left_BW, ids_BC = _some(left_QW, start, size), ids_QC[start : start + size]
        cells_BC = np.where(ids_BC >= 0, ids_BC + np.arange(len(ids_BC))[:, None] * L, size * L)
        place_R[cells_BC.ravel()] = np.arange(1, ids_BC.size + 1)
        place_R[size * L] = 0
        rows = right_WL[left_BW.indices]
        counts = np.diff(rows.indptr)
        at_T = place_R[rows.indices + np.repeat(_row_starts(left_BW, L), counts)]
        hits = np.flatnonzero(at_T)  # most entries are of labels that nobody asked for
        entries = np.searchsorted(rows.indptr, hits, side="right") - 1
        sums = np.bincount(at_T[hits], rows.data[hits] * left_BW.data[entries], minlength=ids_BC.size + 1)
        firsts = np.full(ids_BC.size + 1, -1)
        firsts[at_T[hits][::-1]] = left_QW.indptr[start] + entries[::-1]  # of equal places what is written last stays
        found_QC[start : start + size] = sums[place_R[cells_BC]]
        first_QC[start : start + size] = firsts[place_R[cells_BC]]
        place_R[cells_BC.ravel()] = 0
    return found_QC, first_QC


def _some(matrix_QX: csr_matrix, start: int, size: int) -> csr_matrix:
    return matrix_QX if size >= matrix_QX.shape[0] else matrix_QX[start : start + size]


def _row_starts(matrix_BX: csr_matrix, width: int) -> NDArray[np.int32]:
    """For each entry where its row starts, were the rows laid end to end; below CELLS_AT_ONCE or in the first row."""
    return np.repeat(np.arange(matrix_BX.shape[0], dtype=np.int32) * np.int32(width), np.diff(matrix_BX.indptr))


def best_of(ids_QC: Ids, scores_QC: Floats, top: int) -> tuple[Ids, Floats]:
    """The candidates by falling score, equal ones by id; -1 and -inf where there are no more."""
    ids_QK, scores_QK = best_first(ids_QC, scores_QC, top)
    missing = top - ids_QK.shape[1]
    if missing <= 0:
        return ids_QK, scores_QK
    return (
        np.pad(ids_QK, ((0, 0), (0, missing)), constant_values=-1),
        np.pad(scores_QK, ((0, 0), (0, missing)), constant_values=-np.inf),
    )
