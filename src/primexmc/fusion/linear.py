"""A sparse linear classifier for each label, fitted in blocks of labels side by side.

A label's weights stand on the words of its own queries alone, and on a word that all texts have: its weight is the
bias. What is made small is |w|^2 / 2 plus the strength times the squared hinges max(0, 1 - y s)^2 of the given (query,
label) pairs. That is a problem of its own for each label. Many of them are solved as one, so that Python's steps cost
nothing beside the products, but no more than fit into a processor's cache, with the pairs and the weights of a label
next to each other.
Shapes: N queries, W words, L labels; of a block B labels, E pairs, M words in all pairs, P parameters: (label, word).
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, hstack, vstack

from .descent import descend

Floats = NDArray[np.float32]
ENTRIES_AT_ONCE = 2**20  # words in the pairs of a block: measured


def fit_linear(
    x_NW: csr_matrix,
    positives: csr_matrix,
    negatives: csr_matrix,
    *,
    strength: float = 1.0,
    iterations: int = 20,
    threads: int = 1,
) -> tuple[csr_matrix, Floats]:
    """weights_WL and bias_L from queries with their true and their wrong labels (N x L; a true one is never wrong).

    The number of threads changes nothing but the time.
    """
    N, W = x_NW.shape
    x_NW = csr_matrix(hstack([x_NW, csr_matrix(np.ones((N, 1)))], dtype=np.float32))
    pairs_NL = (2 * _ones(positives) + _ones(negatives)).tocsc()  # 1 where wrong, above where true

    def fit(labels: slice) -> csr_matrix:
        pairs_NB = pairs_NL[:, labels]
        y_E: Floats = np.where(pairs_NB.data > 1, 1, -1).astype(np.float32)
        design_EP, weights_BW = _design(x_NW, pairs_NB, y_E)
        weights_BW.data = descend(design_EP, y_E, pairs_NB.indptr, weights_BW.indptr, strength, iterations)
        return weights_BW

    with ThreadPoolExecutor(threads) as pool:
        weights_LW = vstack(list(pool.map(fit, _blocks(x_NW, pairs_NL))), format="csc")
    bias_L: Floats = weights_LW[:, W].toarray().ravel()
    return csr_matrix(weights_LW[:, :W].T), bias_L


def _blocks(x_NW: csr_matrix, pairs_NL: csc_matrix) -> list[slice]:
    """Labels next to each other, at least one, with so many words in their pairs."""
    entries = np.concatenate([[0], np.diff(x_NW.indptr).astype(np.int64)[pairs_NL.indices].cumsum()])[pairs_NL.indptr]
    starts = [0]
    while starts[-1] < pairs_NL.shape[1]:
        end = int(np.searchsorted(entries, entries[starts[-1]] + ENTRIES_AT_ONCE, side="right")) - 1
        starts.append(max(end, starts[-1] + 1))
    return [slice(start, end) for start, end in itertools.pairwise(starts)]


def _design(x_NW: csr_matrix, pairs_NL: csc_matrix, y_E: Floats) -> tuple[csr_matrix, csr_matrix]:
    """Row e holds the words of pair e's query, in the columns of the parameters of pair e's label; and where these
    parameters belong among labels x words."""
    L, W = pairs_NL.shape[1], x_NW.shape[1]
    x_EW = x_NW[pairs_NL.indices]
    lengths_E = np.diff(x_EW.indptr)
    label_M = np.repeat(np.repeat(np.arange(L, dtype=np.int32), np.diff(pairs_NL.indptr)), lengths_E)
    known_M = np.repeat(y_E > 0, lengths_E)
    rows = np.concatenate([label_M[known_M], np.arange(L, dtype=np.int32)])  # each label has a bias
    columns = np.concatenate([x_EW.indices[known_M], np.full(L, W - 1, dtype=np.int32)])
    places_LW = csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape=(L, W))
    places_LW.data = np.arange(1, places_LW.nnz + 1, dtype=np.int32)
    place_M = np.asarray(places_LW[label_M, x_EW.indices]).ravel()  # 0 where the label has no such word
    there_M = place_M > 0
    starts = np.concatenate([[0], there_M.cumsum()])[x_EW.indptr]
    shape = (len(y_E), places_LW.nnz)
    return csr_matrix((x_EW.data[there_M], place_M[there_M] - 1, starts), shape=shape), places_LW


def _ones(matrix: csr_matrix) -> csr_matrix:
    ones = csr_matrix((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), matrix.shape)
    ones.sum_duplicates()
    ones.data[:] = 1
    return ones
