"""Head, torso and tail: the metrics by how often a label was trained.

For each bucket, over the same predictions of all labels:
- `P@k` is the bucket's share of P@k: hits in the bucket over k per query. The three add up to the whole P@k.
- `R@k` is the mean, over the queries with a positive in the bucket, of the share of those positives among the first k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.frequency import BUCKETS as BUCKETS
from ..data.frequency import frequency_buckets as frequency_buckets
from .hits import Hits


class BucketMetrics:
    """Streaming metrics by bucket: `update_hits` as often as needed, then `result`."""

    def __init__(
        self, buckets_L: ArrayLike, ks: Sequence[int] = (1, 3, 5), recall_ks: Sequence[int] = (5, 10, 100)
    ) -> None:
        self.buckets_L: NDArray[np.int8] = np.asarray(buckets_L, dtype=np.int8)
        self.ks = tuple(ks)
        self.recall_ks = tuple(recall_ks)
        self.num_all_queries = 0
        self.num_ranks: int | None = None
        self.num_positives = np.zeros(3, dtype=np.int64)
        self.num_queries = np.zeros(3, dtype=np.int64)
        self.num_hits = {k: np.zeros(3, dtype=np.int64) for k in self.ks}
        self.recall_sums = {k: np.zeros(3) for k in self.recall_ks}

    def update_hits(self, hits: Hits) -> None:
        """Add some queries' hits."""
        self.num_all_queries += len(hits.num_positives_Q)
        self.num_ranks = hits.num_ranks if self.num_ranks is None else min(self.num_ranks, hits.num_ranks)
        true_buckets_T, hit_buckets_H = self.buckets_L[hits.true_labels_T], self.buckets_L[hits.labels_H]
        for bucket in range(3):
            rows_T = hits.true_rows_T[true_buckets_T == bucket]
            num_positives_Q = np.bincount(rows_T, minlength=len(hits.num_positives_Q))
            self.num_positives[bucket] += len(rows_T)
            self.num_queries[bucket] += np.count_nonzero(num_positives_Q)
            inside = hit_buckets_H == bucket
            rows_H, ranks_H = hits.rows_H[inside], hits.ranks_H[inside]
            for k in self.ks:
                self.num_hits[k][bucket] += np.count_nonzero(ranks_H < k)
            for k in self.recall_ks:
                self.recall_sums[k][bucket] += (1.0 / num_positives_Q[rows_H[ranks_H < k]]).sum()

    def result(self) -> dict[str, dict[str, float]]:
        """`{"head": {"labels", "queries", "positives", "P@1", ...}, "torso": ..., "tail": ...}`, in percent."""
        return {name: self._bucket(bucket) for bucket, name in enumerate(BUCKETS)}

    def _bucket(self, bucket: int) -> dict[str, float]:
        num_queries, num_labels = int(self.num_queries[bucket]), len(self.buckets_L)
        scores: dict[str, float] = {
            "labels": int(np.count_nonzero(self.buckets_L == bucket)),
            "queries": num_queries,
            "positives": int(self.num_positives[bucket]),
        }
        for k in self.ks:
            scores[f"P@{k}"] = float(100 * self.num_hits[k][bucket] / (k * max(1, self.num_all_queries)))
        for k in self.recall_ks:
            if (self.num_ranks or 0) >= min(k, num_labels):
                scores[f"R@{k}"] = float(100 * self.recall_sums[k][bucket] / max(1, num_queries))
        return scores
