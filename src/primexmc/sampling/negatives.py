"""Which labels a batch meets besides those drawn for its queries: none, random ones, all, or the nearest wrong ones.

Shapes: N training queries, L labels, Q queries of the batch, K mined labels of a query.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..config import SamplingSettings
from ..own_code import own

Ints = NDArray[np.int64]


class LabelSource(Protocol):
    """More label columns for a batch; each becomes a negative of every query that it is not true for."""

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        """Label ids of any shape; -1 is nothing, and what comes twice counts once."""
        ...


class NoMore:
    """The drawn positives of the other queries are the negatives (NGAME, DPR, PRIME)."""

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        return np.zeros(0, dtype=np.int64)


class RandomPool:
    """So many labels at random, others in every batch (DEXML with a sampled pool)."""

    def __init__(self, num_labels: int, size: int) -> None:
        self.num_labels, self.size = num_labels, min(size, num_labels)

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        return rng.choice(self.num_labels, self.size, replace=False)


class AllLabels:
    """Every label in every batch (DEXML)."""

    def __init__(self, num_labels: int) -> None:
        self.labels_L = np.arange(num_labels, dtype=np.int64)

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        return self.labels_L


class Mined:
    """Some of each query's nearest wrong labels, from a table that training searches anew now and then (ANCE)."""

    def __init__(self, per_query: int) -> None:
        self.per_query = per_query
        self.table_NK: NDArray[np.integer] = np.zeros((0, 0), dtype=np.int64)  # empty before the first search

    def draw(self, queries: Ints, rng: np.random.Generator) -> Ints:
        if self.table_NK.size == 0:
            return np.zeros(0, dtype=np.int64)
        place_Qn = rng.integers(0, self.table_NK.shape[1], (len(queries), self.per_query))
        return self.table_NK[queries[:, None], place_Qn].astype(np.int64)


def label_source(positives: csr_matrix, settings: SamplingSettings) -> LabelSource:
    """What `sampling.negatives` names; one's own is made from (positives, settings), too."""
    num_labels = positives.shape[1]
    if settings.negatives == "batch":
        return NoMore()
    if settings.negatives == "pool":
        return RandomPool(num_labels, settings.pool_size)
    if settings.negatives == "all":
        return AllLabels(num_labels)
    if settings.negatives == "mined":
        return Mined(settings.mined_per_query)
    source: LabelSource = own(settings.negatives, "sampling.negatives")(positives, settings)
    return source
