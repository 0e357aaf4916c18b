"""PairsBuilder: who belongs to whom, collected row by row into a sparse matrix without lists of lists."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix


class PairsBuilder:
    """Rows of (label, relevance) in growing typed arrays: eight bytes a pair."""

    def __init__(self) -> None:
        self.labels = array("i")
        self.relevance = array("f")
        self._row_ends = array("q", [0])

    def add_row(self, labels: Iterable[int], relevance: Iterable[float] | None = None) -> None:
        """One row. TypeError and OverflowError are raised for what is no label index or no number."""
        self.labels.extend(labels)
        if relevance is None:
            self.relevance.extend([1.0] * (len(self.labels) - self._row_ends[-1]))
        else:
            self.relevance.extend(relevance)
        self._row_ends.append(len(self.labels))

    def add_rows(self, matrix: csr_matrix) -> None:
        """All rows of a matrix."""
        shifted_ends = matrix.indptr[1:].astype(np.int64) + len(self.labels)
        self.labels.frombytes(matrix.indices.astype(np.int32).tobytes())
        self.relevance.frombytes(matrix.data.astype(np.float32).tobytes())
        self._row_ends.frombytes(shifted_ends.tobytes())

    def row_out_of_range(self, num_labels: int) -> tuple[int, int] | None:
        """The first (row, label) that is not in 0 .. num_labels - 1."""
        labels = np.frombuffer(self.labels, dtype=np.int32)
        if not labels.size or (labels.min() >= 0 and labels.max() < num_labels):
            return None
        position = int(np.flatnonzero((labels < 0) | (labels >= num_labels))[0])
        return self._row_of(position), int(labels[position])

    def row_of_bad_relevance(self) -> tuple[int, float] | None:
        """The first (row, relevance) that is negative, infinite or not a number."""
        values = np.frombuffer(self.relevance, dtype=np.float32)
        if not values.size or (values.min() >= 0 and np.isfinite(values.max())):
            return None
        position = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
        return self._row_of(position), float(values[position])

    def finish(self, num_labels: int) -> csr_matrix:
        """Sorted rows, a label at most once a row (the larger relevance stays), no zeros."""
        ends = np.frombuffer(self._row_ends, dtype=np.int64)
        matrix = csr_matrix(
            (
                np.frombuffer(self.relevance, dtype=np.float32),
                np.frombuffer(self.labels, dtype=np.int32),
                ends.astype(np.int32) if ends[-1] < 2**31 else ends,
            ),
            shape=(len(ends) - 1, num_labels),
        )
        return tidy(matrix)

    def _row_of(self, position: int) -> int:
        ends = np.frombuffer(self._row_ends, dtype=np.int64)
        return int(np.searchsorted(ends, position, side="right")) - 1


def tidy(matrix: csr_matrix) -> csr_matrix:
    """The same pairs with sorted rows, each once (the larger value stays) and no explicit zeros."""
    matrix.sort_indices()
    first = _first_of_each_pair(matrix)
    if not first.all():
        starts = np.flatnonzero(first)
        row_starts = np.concatenate([[0], np.cumsum(first)])[matrix.indptr]
        values = np.maximum.reduceat(matrix.data, starts)
        matrix = csr_matrix((values, matrix.indices[starts], row_starts), shape=matrix.shape)
        matrix.has_sorted_indices = True
    if not matrix.data.all():
        matrix.eliminate_zeros()
    return matrix


def _first_of_each_pair(matrix: csr_matrix) -> NDArray[np.bool_]:
    first = np.ones(matrix.nnz, dtype=np.bool_)
    first[1:] = matrix.indices[1:] != matrix.indices[:-1]
    row_starts = matrix.indptr[:-1]
    first[row_starts[row_starts < matrix.nnz]] = True
    return first
