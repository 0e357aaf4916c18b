"""How a model's memory follows its labels.

Shapes: N remembered queries, Q queries, L labels, D dimensions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from ..data.texts import Texts
from .memory import Memory

IdArray = npt.NDArray[np.int64]


def without_labels(memory: Memory, kept: IdArray) -> Memory:
    """Only these labels; a query that has none of them is forgotten."""
    positives = memory.positives[:, kept]
    rows = np.flatnonzero(np.diff(positives.indptr) > 0)
    return Memory(memory.h_ND[torch.from_numpy(rows)], positives[rows], memory.texts.take(rows))


def with_queries(memory: Memory, texts: list[str], h_QD: Tensor, positives_QL: csr_matrix) -> Memory:
    """More queries, perhaps of more labels. A text that is remembered already gets its labels where it is."""
    num_labels = positives_QL.shape[1]
    known_Q = _rows_of(memory, texts)
    there, new = np.flatnonzero(known_Q >= 0), np.flatnonzero(known_Q < 0)
    old = memory.positives
    old = csr_matrix((old.data, old.indices, old.indptr), shape=(len(memory), num_labels))
    moved = positives_QL[there].tocoo()
    more = csr_matrix((moved.data, (known_Q[there][moved.row], moved.col)), shape=old.shape, dtype=np.float32)
    return Memory(
        torch.cat([memory.h_ND, h_QD[torch.from_numpy(new)].to(memory.h_ND)]),
        vstack([old.maximum(more), positives_QL[new]], format="csr", dtype=np.float32),
        memory.texts.joined(Texts.of(texts[row] for row in new)),
    )


def not_remembered(memory: Memory, texts: list[str], positives_QL: csr_matrix) -> csr_matrix:
    """Those of the pairs that the memory does not hold yet."""
    known_Q = _rows_of(memory, texts)
    there = np.flatnonzero(known_Q >= 0)
    ones = np.ones(len(there), dtype=np.float32)
    row_QN = csr_matrix((ones, (there, known_Q[there])), shape=(len(texts), len(memory)))
    fresh = csr_matrix(positives_QL - positives_QL.multiply(row_QN @ memory.positives > 0))
    fresh.eliminate_zeros()
    return fresh


def _rows_of(memory: Memory, texts: list[str]) -> IdArray:
    """Where each text is remembered, -1 where it is not."""
    row_of = {text: row for row, text in enumerate(memory.texts)}
    return np.array([row_of.get(text, -1) for text in texts], dtype=np.int64)
