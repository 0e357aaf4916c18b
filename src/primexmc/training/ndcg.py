"""nDCG@5 by which everything is chosen that is chosen on held-out queries.

Shapes: Q queries, C candidates a query, K places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..evaluation.hits import positives_only

TOP = 5


class Ndcg:
    """Of some queries, whose true labels it knows."""

    def __init__(self, positives: csr_matrix) -> None:
        num_positives_Q = np.diff(positives_only(positives).indptr)
        self.discount_K = 1 / np.log2(np.arange(TOP) + 2.0)
        full = np.concatenate([[1.0], self.discount_K.cumsum()])
        self.full_Q = full[np.minimum(num_positives_Q, TOP)]

    def __call__(self, right_QK: NDArray[np.bool_]) -> float:
        """`right_QK` says which of the best are true, best first."""
        right_QK = right_QK[:, :TOP]
        return float(((right_QK * self.discount_K[: right_QK.shape[1]]).sum(1) / self.full_Q).mean())

    def of_scores(self, scores_QC: NDArray[np.floating], right_QC: NDArray[np.bool_]) -> float:
        """Of candidates in any order, by their scores."""
        order_QK = np.argsort(-scores_QC, axis=1, kind="stable")[:, :TOP]
        return self(np.take_along_axis(right_QC, order_QK, axis=1))
