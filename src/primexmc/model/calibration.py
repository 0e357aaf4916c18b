"""Calibration: how likely an answer is right, from its score and its rank. Fitted on held-out queries.

A logistic curve over score, log of rank and score x log of rank; then, where there was enough to learn from, a
monotone curve over that. Shapes: Q queries, K answers a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """`weights` of `features`; the knots of the monotone curve over their sum, none where there is no such curve."""

    weights: tuple[float, ...]
    knots: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)  # on how many queries, with which error on held-out ones

    def __call__(self, scores_QK: npt.ArrayLike) -> FloatArray:
        """The probability of each answer, best answers first in every row; 0 where the score is -inf: no answer."""
        scores = np.atleast_2d(np.asarray(scores_QK, dtype=np.float64))
        there = np.isfinite(scores)
        logits = features(np.where(there, scores, 0.0)) @ np.asarray(self.weights)
        if self.knots:
            p_QK = np.interp(logits, self.knots, self.values)
        else:
            p_QK = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
        return np.where(there, p_QK, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("weights", "knots", "values")}
        return {**lists, "facts": self.facts}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The inverse; a ValueError, KeyError or TypeError where the values are no calibration."""
        lists = {name: tuple(map(float, values[name])) for name in ("weights", "knots", "values")}
        if len(lists["weights"]) != NUM_FEATURES or len(lists["knots"]) != len(lists["values"]):
            raise ValueError("weights, knots and values do not belong together")
        return cls(**lists, facts=dict(values["facts"]))


NUM_FEATURES = 4


def features(scores_QK: FloatArray) -> FloatArray:
    """(1, score, log of rank, their product) of each answer."""
    log_rank_K = np.log(np.arange(1, scores_QK.shape[1] + 1))
    log_rank_QK = np.broadcast_to(log_rank_K, scores_QK.shape)
    return np.stack([np.ones_like(scores_QK), scores_QK, log_rank_QK, scores_QK * log_rank_QK], axis=-1)
