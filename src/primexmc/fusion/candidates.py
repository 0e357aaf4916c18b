"""Candidates: the labels that the prototypes propose, which the other voices then judge.

Shapes: Q queries, L labels, C candidates a query, K answers a query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
CELLS_AT_ONCE = 2**22  # 16 MB


def product_at(left_QW: csr_matrix, right_WL: csr_matrix, ids_QC: Ids) -> Floats:
    """The entries of left @ right at each row's candidates, 0 where the id is -1; by dense blocks of bounded size."""
    rows_at_once = max(1, CELLS_AT_ONCE // max(1, right_WL.shape[1]))
    found_QC = np.zeros(ids_QC.shape, dtype=np.float32)
    for start in range(0, len(ids_QC), rows_at_once):
        rows = slice(start, start + rows_at_once)
        block_BL = csr_matrix(left_QW[rows] @ right_WL).toarray()
        ids_BC = ids_QC[rows]
        found_QC[rows] = np.where(ids_BC >= 0, np.take_along_axis(block_BL, np.maximum(ids_BC, 0), axis=1), 0)
    return found_QC


def best_of(ids_QC: Ids, scores_QC: Floats, top: int) -> tuple[Ids, Floats]:
    """The candidates by falling score, equal ones by id; -1 and -inf where there are no more."""
    order_QC = np.lexsort((ids_QC, -scores_QC), axis=1)[:, :top]
    ids_QK, scores_QK = np.take_along_axis(ids_QC, order_QC, 1), np.take_along_axis(scores_QC, order_QC, 1)
    missing = top - ids_QK.shape[1]
    if missing <= 0:
        return ids_QK, scores_QK
    return (
        np.pad(ids_QK, ((0, 0), (0, missing)), constant_values=-1),
        np.pad(scores_QK, ((0, 0), (0, missing)), constant_values=-np.inf),
    )
