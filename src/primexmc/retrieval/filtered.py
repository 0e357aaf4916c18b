"""Pairs of a query and a label that never come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor


class Filtered:
    """The filtered pairs of one block of queries, asked label block by label block."""

    def __init__(self, pairs: Any | None) -> None:
        """`pairs` is a sparse matrix, queries x labels; what is not zero in it is filtered."""
        self.rows = self.labels = np.zeros(0, dtype=np.int64)
        if pairs is None:
            return
        matrix = csr_matrix(pairs)
        kept = matrix.data != 0
        self.rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[kept]
        self.labels = matrix.indices[kept].astype(np.int64)

    def most_of_a_query(self) -> int:
        """How many labels the query with the most of them must do without."""
        return int(np.bincount(self.rows).max()) if len(self.rows) else 0

    def cross_out(self, s_BC: Tensor, start: int) -> None:
        """The lowest value there is, in place of the pairs' scores; `start` is the label of the first column."""
        if len(self.rows) == 0:
            return
        inside = (self.labels >= start) & (self.labels < start + s_BC.shape[1])
        rows = torch.from_numpy(self.rows[inside]).to(s_BC.device)
        columns = torch.from_numpy(self.labels[inside] - start).to(s_BC.device)
        s_BC[rows, columns] = lowest(s_BC.dtype)


def lowest(dtype: torch.dtype) -> float:
    """What a score is set to that must not come back."""
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min
