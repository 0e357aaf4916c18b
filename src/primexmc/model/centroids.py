"""Centroids: for each label the mean of its training queries' normalised embeddings, exact or moving.

Shapes: N training queries, L labels, M labels of a batch, E (label, query) pairs, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

PAIRS_PER_STEP = 1 << 17


@dataclass(frozen=True)
class Centroids:
    """`c_LD`, and of how many queries each is the mean: a label without training queries has none."""

    c_LD: Tensor
    count_L: Tensor  # exact where the means are; of moving averages it tells only which there are

    @property
    def has_L(self) -> Tensor:
        return self.count_L > 0

    @classmethod
    def empty(cls, num_labels: int, dim: int, device: torch.device) -> Centroids:
        count_L = torch.zeros(num_labels, dtype=torch.int64, device=device)
        return cls(torch.zeros(num_labels, dim, device=device), count_L)

    def set_to_mean(self, blocks: Iterable[Tensor], positives: csr_matrix) -> None:
        """Exact means, in place. The blocks hold the rows of h_ND (normalised) in the order of the matrix's rows."""
        self.c_LD.zero_()
        start = 0
        for h_BD in blocks:
            for rows, labels in _pairs(positives, start, start + len(h_BD)):
                source = h_BD[rows.to(h_BD.device)].to(self.c_LD.dtype)
                self.c_LD.index_add_(0, labels.to(self.c_LD.device), source)
            start += len(h_BD)
        count_L = torch.from_numpy(np.bincount(positives.indices, minlength=positives.shape[1])).to(self.c_LD.device)
        self.c_LD.div_(count_L.clamp(min=1)[:, None])
        self.count_L.copy_(count_L)

    def move(self, labels_M: Tensor, mean_MD: Tensor, decay: float) -> None:
        """The moving average: `c <- decay c + (1 - decay) mean` for labels that each occur once.

        Who has a centroid stays as it began: a label that training meets has queries, and one that only a pool of
        labels brought has none.
        """
        self.c_LD.index_copy_(0, labels_M, decay * self.c_LD[labels_M] + (1 - decay) * mean_MD)


def _pairs(positives: csr_matrix, start: int, stop: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The (row - start, label) pairs of some rows, a bounded number at a time."""
    begin, end = int(positives.indptr[start]), int(positives.indptr[stop])
    rows = np.repeat(np.arange(stop - start), np.diff(positives.indptr[start : stop + 1]))
    for at in range(begin, end, PAIRS_PER_STEP):
        upto = min(at + PAIRS_PER_STEP, end)
        labels = positives.indices[at:upto].astype(np.int64)
        yield torch.from_numpy(rows[at - begin : upto - begin]), torch.from_numpy(labels)
