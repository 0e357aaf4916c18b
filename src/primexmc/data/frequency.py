"""Head, torso and tail: labels by how often they were trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BUCKETS = ("head", "torso", "tail")


def frequency_buckets(label_counts_L: ArrayLike) -> NDArray[np.int8]:
    """0, 1, 2 (head, torso, tail) for each label, by equal shares of the training positives.

    Labels by falling count (ties by id); those that begin within the first third of all positives are head, within
    the second third torso, the rest tail. Labels without training queries are tail.
    """
    counts_L = np.asarray(label_counts_L, dtype=np.int64)
    order_L = np.argsort(-counts_L, kind="stable")
    before_L = np.cumsum(counts_L[order_L]) - counts_L[order_L]
    buckets_L = np.empty(len(counts_L), dtype=np.int8)
    buckets_L[order_L] = np.minimum(3 * before_L // max(1, int(counts_L.sum())), 2)
    buckets_L[counts_L == 0] = 2
    return buckets_L
