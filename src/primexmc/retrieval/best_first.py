"""The best of some labels in order: one number holds a label's score and its id, and numbers are quickly sorted.

Shapes: Q queries, C labels a query, K results a query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
LOW = 2**32 - 1  # the half of a key that holds the id


def best_first(ids_QC: Ids, scores_QC: Floats, top: int) -> tuple[Ids, Floats]:
    """The `top` (or all, if there are fewer) by falling score, equal scores by rising id and -1 behind the others."""
    assert scores_QC.dtype == np.float32, scores_QC.dtype
    keys_QC = np.left_shift(~_in_order((scores_QC + np.float32(0)).view(np.int32)), 32, dtype=np.int64)
    keys_QC |= ids_QC & LOW
    if top < keys_QC.shape[1] // 4:
        keys_QC = np.partition(keys_QC, top - 1, axis=1)[:, :top]
    keys_QK = np.sort(keys_QC, axis=1)[:, :top]
    scores_QK = _in_order(~(keys_QK >> 32).astype(np.int32)).view(np.float32)
    return (keys_QK & LOW).astype(np.uint32).view(np.int32).astype(np.int64), scores_QK


def _in_order(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Whole numbers that rise as the floats with these bits do; its own inverse. A float's bits do so above 0 (there is
    no -0.0 here), below 0 they fall."""
    return bits ^ ((bits >> 31) & np.int32(2**31 - 1))
