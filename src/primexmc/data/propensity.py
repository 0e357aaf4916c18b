"""Inverse propensity: how much a rare label's hit counts more (Jain et al. 2016)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inverse_propensity(label_counts_L: NDArray[Any], num_queries: int, a: float, b: float) -> NDArray[np.float64]:
    """1 + (ln N - 1)(b + 1)^a (n_l + b)^-a for labels with n_l of N training queries.

    Of a single query the formula gives nothing or less than that: all count alike then.
    """
    if num_queries < 2:
        return np.ones(len(label_counts_L))
    counts_L = np.asarray(label_counts_L, dtype=np.float64)
    if b == 0:  # n_l = 0 would divide by zero: a label never seen counts as one seen once
        counts_L = np.maximum(counts_L, 1.0)
    c = (math.log(num_queries) - 1.0) * (b + 1.0) ** a
    return np.asarray(1.0 + c * (counts_L + b) ** -a, dtype=np.float64)
