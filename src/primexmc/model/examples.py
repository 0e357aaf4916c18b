"""Example queries of labels, given without training: each text once, whatever number of labels it stands for.

Shapes: M labels, Q different texts, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from .centroids import Centroids
from .memory import Memory
from .memory_changes import not_remembered
from .per_label import IdArray

if TYPE_CHECKING:
    from .model import PrimeModel


@dataclass(frozen=True)
class Examples:
    """Texts and what they look like; `positives` is Q x M."""

    texts: list[str]
    h_QD: Tensor
    positives: csr_matrix

    @classmethod
    def of(cls, model: PrimeModel, queries: Sequence[Sequence[str]]) -> Examples:
        """One list of texts a label, perhaps empty; a text that a label has twice counts once."""
        row_of: dict[str, int] = {}
        pairs = dict.fromkeys(
            (row_of.setdefault(text, len(row_of)), label) for label, own in enumerate(queries) for text in own
        )
        rows_E, labels_E = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        ones_E = np.ones(len(pairs), dtype=np.float32)
        positives = csr_matrix((ones_E, (rows_E, labels_E)), shape=(len(row_of), len(queries)))
        return cls(list(row_of), torch.from_numpy(model.encode(list(row_of))), positives)

    @property
    def counts_M(self) -> IdArray:
        return np.bincount(self.positives.indices, minlength=self.positives.shape[1]).astype(np.int64)

    def centroids(self, device: torch.device) -> Centroids:
        """Each label's mean of its texts' normalised embeddings."""
        centroids = Centroids.empty(self.positives.shape[1], self.h_QD.shape[1], device)
        centroids.set_to_mean([self.h_QD.to(device)], self.positives)
        return centroids

    def among(self, rows_M: IdArray, num_labels: int) -> csr_matrix:
        """Q x L, where `rows_M` are the labels' ids."""
        columns = rows_M[self.positives.indices]
        moved = csr_matrix((self.positives.data, columns, self.positives.indptr), (len(self.texts), num_labels))
        moved.sort_indices()
        return moved

    def not_in(self, memory: Memory, rows_M: IdArray) -> Examples:
        """Without the pairs of text and label that the memory holds already: they count once."""
        fresh = not_remembered(memory, self.texts, self.among(rows_M, memory.positives.shape[1]))
        return Examples(self.texts, self.h_QD, fresh[:, rows_M])


def merged(one: Centroids, two: Centroids) -> Centroids:
    """The means over the queries of both."""
    count_M = one.count_L.long() + two.count_L
    total_MD = one.c_LD * one.count_L[:, None] + two.c_LD * two.count_L[:, None]
    return Centroids(total_MD / count_M.clamp(min=1)[:, None], count_M)
