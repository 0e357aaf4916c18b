"""A sparse linear classifier for each label, all fitted as one problem.

A label's weights stand on the words of its own queries alone. What is made small is |w|^2 / 2 plus the strength times
the squared hinges max(0, 1 - y s)^2 of the given (query, label) pairs. In the weights that is one least-squares-like
problem: row e of the design matrix holds the words of pair e's query in the columns of pair e's label.
Shapes: N queries, W words, L labels, E pairs, P parameters: the (word, label) weights, then L biases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from ..data.ragged import ragged_take

Floats = NDArray[np.float32]


def fit_linear(
    x_NW: csr_matrix, positives: csr_matrix, negatives: csr_matrix, *, strength: float = 1.0, iterations: int = 20
) -> tuple[csr_matrix, Floats]:
    """weights_WL and bias_L from queries with their true and their wrong labels (N x L; a true one is never wrong)."""
    true, wrong = _ones(positives), _ones(negatives)
    pairs = (2 * true + wrong).tocsr()  # 1 where wrong, above where true
    y_E: Floats = np.where(pairs.data > 1, 1, -1).astype(np.float32)
    pattern_WL = csr_matrix(x_NW.T @ true)
    pattern_WL.sort_indices()
    design_EP = _design(x_NW, pairs, pattern_WL)
    parameters_P = _minimise(design_EP, y_E, strength, iterations)
    weights_WL = csr_matrix((parameters_P[: pattern_WL.nnz], pattern_WL.indices, pattern_WL.indptr), pattern_WL.shape)
    return weights_WL, parameters_P[pattern_WL.nnz :]


def _design(x_NW: csr_matrix, pairs: csr_matrix, pattern_WL: csr_matrix) -> csr_matrix:
    """Each pair's query in the columns of its label, where the label has weights, and a 1 for the label's bias."""
    W, L = pattern_WL.shape
    query_E = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    label_E = pairs.indices.astype(np.int64)
    at, starts = ragged_take(np.arange(x_NW.nnz), x_NW.indptr.astype(np.int64), query_E)
    pair = np.repeat(np.arange(len(query_E)), np.diff(starts))
    known = np.repeat(np.arange(W, dtype=np.int64), np.diff(pattern_WL.indptr)) * L + pattern_WL.indices
    wanted = x_NW.indices[at].astype(np.int64) * L + label_E[pair]
    column = np.searchsorted(known, wanted)
    there = known[np.minimum(column, len(known) - 1)] == wanted if len(known) else np.zeros(len(wanted), dtype=bool)
    rows = np.concatenate([pair[there], np.arange(len(query_E))])
    columns = np.concatenate([column[there], pattern_WL.nnz + label_E])
    values = np.concatenate([x_NW.data[at[there]], np.ones(len(query_E))]).astype(np.float32)
    return csr_matrix((values, (rows, columns)), shape=(len(query_E), pattern_WL.nnz + L))


def _minimise(design_EP: csr_matrix, y_E: Floats, strength: float, iterations: int) -> Floats:
    """L-BFGS in parameters that are scaled to like curvature: without, the biases would take hundreds of steps."""
    transposed_PE = design_EP.T.tocsr()
    curvature_P = 1 + 2 * strength * np.asarray(transposed_PE.power(2).sum(1)).ravel()
    scale_P = 1 / np.sqrt(curvature_P)

    def value_and_gradient(scaled_P: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w_P = (scaled_P * scale_P).astype(np.float32)
        hinge_E = np.maximum(0, 1 - y_E * (design_EP @ w_P))
        gradient_P = w_P - 2 * strength * (transposed_PE @ (y_E * hinge_E))
        value = 0.5 * float(w_P @ w_P) + strength * float(np.square(hinge_E).sum(dtype=np.float64))
        return value, gradient_P.astype(np.float64) * scale_P

    options: Any = {"maxiter": iterations, "maxcor": 6}
    start_P = np.zeros(design_EP.shape[1])
    found = minimize(value_and_gradient, start_P, jac=True, method="L-BFGS-B", options=options)
    parameters_P: Floats = (found.x * scale_P).astype(np.float32)
    return parameters_P


def _ones(matrix: csr_matrix) -> csr_matrix:
    ones = csr_matrix((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), matrix.shape)
    ones.sum_duplicates()
    ones.data[:] = 1
    return ones
