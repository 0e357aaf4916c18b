"""More queries of a batch's labels than the batch holds, for moving centroids that see more (an ablation of the paper).

Shapes: N training queries, Q queries and M labels of the batch, X more queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, hstack
from torch import Tensor

from ..losses.positives import Positives
from ..model.token_batch import TokenBatch, to_device
from ..sampling.positives import batch_positives
from .data import TrainingData

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MoreQueries:
    """They are encoded without gradient and have no part in the loss."""

    queries_X: Tensor
    tokens: TokenBatch
    positives_of_M: Positives  # M x (Q + X): the batch's own queries come first


class QuerySampler:
    """Draws `per_label` training queries of each label, all alike likely, with replacement."""

    def __init__(self, data: TrainingData, per_label: int, device: torch.device) -> None:
        self.data, self.per_label, self.device = data, per_label, device
        self.queries_of_L: csr_matrix = data.positives.T.tocsr()

    def draw(
        self, queries: IntArray, labels: IntArray, positives_QM: csr_matrix, rng: np.random.Generator
    ) -> MoreQueries:
        """Those that are in the batch already are not taken again."""
        indptr = self.queries_of_L.indptr.astype(np.int64)
        start_M, count_M = indptr[labels], indptr[labels + 1] - indptr[labels]
        place_Mn = start_M[:, None] + rng.integers(0, np.maximum(count_M, 1)[:, None], (len(labels), self.per_label))
        drawn = self.queries_of_L.indices[place_Mn[count_M > 0].ravel()]
        more = np.setdiff1d(drawn, queries).astype(np.int64)
        of_M = hstack([positives_QM.T, batch_positives(self.data.positives, more, labels).T], format="csr")
        return MoreQueries(
            to_device(torch.from_numpy(more), self.device),
            TokenBatch.from_arrays(*self.data.query_tokens.take(more), self.device),
            Positives.from_csr(csr_matrix(of_M), self.device),
        )
