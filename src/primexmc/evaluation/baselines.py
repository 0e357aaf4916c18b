"""What a model has to beat: popularity and nearest neighbours by tf-idf (and the untrained encoder: zero_shot.py).

Each gives ranked label ids (queries x top, -1 = none), with the filtered pairs of the split left out.
Shapes: Q queries, N training queries, W words, L labels, K predictions; B queries in a block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..data.corpus import Split
from ..data.tfidf import TfIdf
from .hits import IntArray, label_counts, positives_only

SIMILARITIES_PER_BLOCK = 8_000_000  # 32 MB
FREQUENT_WORDS = 128


def popularity(train: Split, queries: Split, top: int = 100) -> IntArray:
    """The most frequent labels of train for every query, ties by id."""
    counts_L = label_counts(train.positives)
    order_L = np.argsort(-counts_L, kind="stable")[: np.count_nonzero(counts_L)]
    pred_QK = np.full((len(queries), top), -1, dtype=np.int64)
    pred_QK[:, : len(order_L)] = order_L[:top]
    if queries.filtered is not None:
        for row in np.flatnonzero(np.diff(queries.filtered.indptr)):
            removed = queries.filtered[[row]].indices
            candidates = order_L[: top + len(removed)]
            allowed = candidates[~np.isin(candidates, removed)][:top]
            pred_QK[row] = np.pad(allowed, (0, top - len(allowed)), constant_values=-1)
    return pred_QK


def tfidf_neighbours(train: Split, queries: Split, top: int = 100, num_neighbours: int = 20) -> IntArray:
    """The labels of the training texts nearest by tf-idf, each weighted by the sum of its neighbours' similarity."""
    tfidf = TfIdf(train.texts)
    train_NW, query_QW = tfidf.vectors(train.texts), tfidf.vectors(queries.texts)
    similarity, train_NL = _Similarity(train_NW), positives_only(train.positives)
    size = max(1, SIMILARITIES_PER_BLOCK // max(1, len(train)))
    pred_QK = np.full((len(queries), top), -1, dtype=np.int64)
    for start in range(0, len(queries), size):
        rows = slice(start, start + size)
        near_BN = _largest(similarity.to(query_QW[rows]), num_neighbours)
        score_BL = _without(near_BN @ train_NL, None if queries.filtered is None else queries.filtered[rows])
        pred_QK[rows] = _ranked(score_BL, top)
    return pred_QK


class _Similarity:
    """Cosines with all training texts: words that most texts share by a dense product, all others by a sparse one."""

    def __init__(self, train_NW: csr_matrix) -> None:
        num_texts_W = np.bincount(train_NW.indices, minlength=train_NW.shape[1])
        order_W = np.argsort(-num_texts_W, kind="stable")
        self.frequent, self.rare = order_W[:FREQUENT_WORDS], order_W[FREQUENT_WORDS:]
        self.frequent_FN = np.ascontiguousarray(train_NW[:, self.frequent].toarray().T)
        self.rare_RN = train_NW[:, self.rare].T.tocsr()

    def to(self, query_BW: csr_matrix) -> NDArray[np.float32]:
        s_BN: NDArray[np.float32] = query_BW[:, self.frequent].toarray() @ self.frequent_FN
        rare_BN = (query_BW[:, self.rare] @ self.rare_RN).tocoo()
        s_BN[rare_BN.row, rare_BN.col] += rare_BN.data
        return s_BN


def _largest(s_BN: NDArray[np.float32], num: int) -> csr_matrix:
    """The `num` largest of each row, where above 0, as a sparse matrix."""
    num = min(num, s_BN.shape[1])
    columns_BK = np.argpartition(s_BN, s_BN.shape[1] - num, axis=1)[:, s_BN.shape[1] - num :]
    values_BK = np.maximum(np.take_along_axis(s_BN, columns_BK, axis=1), 0)
    indptr = num * np.arange(len(s_BN) + 1)
    near_BN = csr_matrix((values_BK.ravel(), columns_BK.ravel(), indptr), shape=s_BN.shape)
    near_BN.eliminate_zeros()
    return near_BN


def _without(score_BL: csr_matrix, filtered: csr_matrix | None) -> csr_matrix:
    if filtered is not None:
        score_BL = csr_matrix(score_BL - score_BL.multiply(positives_only(filtered)))
    score_BL.eliminate_zeros()
    return score_BL


def _ranked(score_BL: csr_matrix, top: int) -> IntArray:
    """The stored labels of each row by falling score, ties by id; -1 after the last."""
    num_B = np.diff(score_BL.indptr)
    rows = np.repeat(np.arange(len(num_B)), num_B)
    order = np.lexsort((score_BL.indices, -score_BL.data, rows))
    ranks = np.arange(len(rows)) - np.repeat(score_BL.indptr[:-1], num_B)
    pred_BK = np.full((len(num_B), top), -1, dtype=np.int64)
    pred_BK[rows[ranks < top], ranks[ranks < top]] = score_BL.indices[order][ranks < top]
    return pred_BK
