"""P@k, nDCG@k, R@k and their propensity-scored forms, in percent.

P@k, nDCG@k and R@k are means over rows; PSP@k and PSnDCG@k are ratios of data-set means, ours over the ideal ranking's
(the true labels by falling weight). Rows without labels count as 0. Shapes: Q queries, L labels, H hits, T positives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data.propensity import inverse_propensity
from ..errors import UserError
from .hits import FloatArray, Hits, IntArray, find_hits, label_counts


def metrics(
    pred_ids: ArrayLike,
    true_csr: Any,
    train_csr: Any,
    a: float = 0.55,
    b: float = 1.5,
    ks: Sequence[int] = (1, 3, 5),
) -> dict[str, float]:
    """All metrics of ranked predictions: `pred_ids` is queries x k, best first, -1 = none.

    `train_csr` (training queries x labels) gives N and the label frequencies of the propensities. Ranks that are not
    there count as none: R@100 of five predictions is their R@5.
    """
    num_train, num_labels = train_csr.shape
    if true_csr.shape[1] != num_labels:
        raise UserError(
            f"The true matrix has {true_csr.shape[1]} labels and the training matrix {num_labels}; they must agree."
        )
    ranking = RankingMetrics(inverse_propensity(label_counts(train_csr), num_train, a, b), ks, shallow=True)
    ranking.update(pred_ids, true_csr)
    return ranking.result()


class RankingMetrics:
    """The same, piece by piece: `update` with as many queries at a time as memory likes, then `result`.

    R@k is left out where the predictions neither go so deep nor hold all labels, unless `shallow` ones are wanted.
    """

    def __init__(
        self,
        inverse_propensity_L: ArrayLike,
        ks: Sequence[int] = (1, 3, 5),
        recall_ks: Sequence[int] = (10, 100),
        *,
        shallow: bool = False,
    ) -> None:
        self.weights_L: FloatArray = np.asarray(inverse_propensity_L, dtype=np.float64)
        self.ks = tuple(ks)
        self.recall_ks = tuple(recall_ks)
        self.shallow = shallow
        if min((*self.ks, *self.recall_ks), default=1) < 1:
            raise UserError(f"Metrics at k need k of at least 1, not {min((*self.ks, *self.recall_ks))}.")
        self.discount_K: FloatArray = 1 / np.log2(np.arange(max((*self.ks, 1))) + 2.0)
        self.discount_sum_K: FloatArray = np.concatenate([[1.0], np.cumsum(self.discount_K)])  # entry 0 is never used
        self.num_queries = 0
        self.num_ranks: int | None = None  # the shallowest predictions seen
        self.gains = {(kind, k): np.zeros(2) for kind in ("plain", "scored", "ideal") for k in self.ks}
        self.recall_sums = dict.fromkeys(self.recall_ks, 0.0)

    def update(self, pred_ids: ArrayLike, true_csr: Any) -> None:
        """Add some queries: their predictions and their rows of the true matrix."""
        if true_csr.shape[1] != len(self.weights_L):
            raise UserError(f"The true matrix has {true_csr.shape[1]} labels; expected {len(self.weights_L)}.")
        self.update_hits(find_hits(pred_ids, true_csr))

    def update_hits(self, hits: Hits) -> None:
        """The same for hits that are already found."""
        self.num_queries += len(hits.num_positives_Q)
        self.num_ranks = hits.num_ranks if self.num_ranks is None else min(self.num_ranks, hits.num_ranks)
        found, weights_H = (hits.rows_H, hits.ranks_H), self.weights_L[hits.labels_H]
        rankings = {
            "plain": (*found, np.ones_like(weights_H)),
            "scored": (*found, weights_H),
            "ideal": self._ideal(hits),
        }
        for kind, k in self.gains:
            self.gains[kind, k] += self._gain(k, *rankings[kind], hits.num_positives_Q)
        for k in self.recall_ks:
            found_rows = hits.rows_H[hits.ranks_H < k]
            self.recall_sums[k] += float((1.0 / hits.num_positives_Q[found_rows]).sum())

    def result(self) -> dict[str, float]:
        """Percentages of all queries so far."""
        if self.num_queries == 0:
            raise UserError("There is no query to evaluate.")
        gains, num_queries = self.gains, self.num_queries
        scores = {f"P@{k}": 100 * gains["plain", k][0] / (k * num_queries) for k in self.ks}
        scores |= {f"nDCG@{k}": 100 * gains["plain", k][1] / num_queries for k in self.ks}
        scores |= {f"PSP@{k}": _ratio(gains["scored", k][0], gains["ideal", k][0]) for k in self.ks}
        scores |= {f"PSnDCG@{k}": _ratio(gains["scored", k][1], gains["ideal", k][1]) for k in self.ks}
        num_ranks = self.num_ranks or 0
        deep_enough = [k for k in self.recall_ks if self.shallow or num_ranks >= min(k, len(self.weights_L))]
        scores |= {f"R@{k}": 100 * self.recall_sums[k] / num_queries for k in deep_enough}
        return {name: float(score) for name, score in scores.items()}

    def _gain(
        self, k: int, rows: IntArray, ranks: IntArray, weights: FloatArray, num_positives_Q: IntArray
    ) -> tuple[float, float]:
        """Sums over the first k ranks: of the weights, and of the discounted weights over the row's discount sum."""
        inside = ranks < k
        rows, ranks, weights = rows[inside], ranks[inside], weights[inside]
        full = self.discount_sum_K[np.minimum(num_positives_Q[rows], k)]
        return float(weights.sum()), float((weights * self.discount_K[ranks] / full).sum())

    def _ideal(self, hits: Hits) -> tuple[IntArray, IntArray, FloatArray]:
        """The best possible ranking of every row: its true labels by falling weight, as rows, ranks and weights."""
        weights_T = self.weights_L[hits.true_labels_T]
        order_T = np.lexsort((-weights_T, hits.true_rows_T))
        starts_Q = np.cumsum(hits.num_positives_Q) - hits.num_positives_Q
        ranks_T = np.arange(len(order_T), dtype=np.int64) - starts_Q[hits.true_rows_T]
        return hits.true_rows_T, ranks_T, weights_T[order_T]


def _ratio(ours: np.float64, ideal: np.float64) -> float:
    return float(100 * ours / ideal) if ideal > 0 else 0.0
