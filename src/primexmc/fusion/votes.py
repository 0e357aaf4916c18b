"""The memory's voice: the training queries nearest to a query vote for their labels.

Shapes: Q queries, N training queries, K neighbours, L labels, C candidates a query, D dimensions.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..retrieval.exact import ExactIndex
from .candidates import by_rows, by_rows_and_first

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Votes:
    """Each of the K nearest training queries gives its whole share of the softmax to every one of its labels."""

    def __init__(self, h_ND: torch.Tensor, positives: csr_matrix, num_neighbours: int) -> None:
        self.index = ExactIndex(h_ND)
        ones = np.ones(positives.nnz, np.float32)
        self.labels_NL = csr_matrix((ones, positives.indices, positives.indptr), positives.shape)
        self.num_neighbours = num_neighbours

    def neighbours(self, h_QD: Floats) -> tuple[Ids, Floats]:
        """The nearest training queries and their cosines, nearest first."""
        return self.index.search(torch.from_numpy(h_QD).to(self.index.z_LD.device), self.num_neighbours)

    def shares(self, neighbours: tuple[Ids, Floats], temperature: float) -> Floats:
        """What each neighbour's vote is worth; 1 together."""
        near_QK, cosine_QK = neighbours
        share_QK = np.where(near_QK >= 0, np.exp((cosine_QK - cosine_QK[:, :1]) / temperature), 0)
        return np.asarray(share_QK / np.maximum(share_QK.sum(1, keepdims=True), 1e-12))

    def scores(self, neighbours: tuple[Ids, Floats], ids_QC: Ids, temperature: float) -> Floats:
        """For each candidate the sum of the shares of its neighbours, between 0 and 1."""
        return by_rows(self._shares_QN(neighbours, temperature), self.labels_NL, ids_QC)

    def with_nearest(self, neighbours: tuple[Ids, Floats], ids_QC: Ids, temperature: float) -> tuple[Floats, Floats]:
        """The same, and the cosine of the neighbour with the label that is nearest; 0 where none has it."""
        sum_QC, first_QC = by_rows_and_first(self._shares_QN(neighbours, temperature), self.labels_NL, ids_QC)
        cosine_QC = neighbours[1].ravel()[np.maximum(first_QC, 0)]  # entries are neighbours, nearest first
        return sum_QC, np.where(sum_QC > 0, cosine_QC, np.float32(0))

    def queries_of(self, ids_QC: Ids) -> Floats:
        """How many training queries each candidate has."""
        return self._queries_L[np.maximum(ids_QC, 0)]

    @cached_property
    def _queries_L(self) -> Floats:
        return np.bincount(self.labels_NL.indices, minlength=self.labels_NL.shape[1]).astype(np.float32)

    def _shares_QN(self, neighbours: tuple[Ids, Floats], temperature: float) -> csr_matrix:
        near_QK, share_QK = neighbours[0], self.shares(neighbours, temperature)
        starts = np.arange(len(near_QK) + 1) * near_QK.shape[1]
        shape = (len(near_QK), self.labels_NL.shape[0])
        return csr_matrix((share_QK.ravel(), np.maximum(near_QK, 0).ravel(), starts), shape=shape)
