"""Calibration: how likely an answer is right, from its score and its rank. Fitted on held-out queries, for each mode:
what memory and words add makes other scores of the same answers.

A logistic curve (Platt's) whose height and slope change with the rank. Shapes: Q queries, K answers a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
NUM_FEATURES = 6


@dataclass(frozen=True)
class Calibration:
    """`weights` of `features`; `facts` tell on how many queries it was fitted, and its error on held-out ones."""

    weights: tuple[float, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def __call__(self, scores_QK: npt.ArrayLike) -> FloatArray:
        """The probability of each answer, best answers first in every row, none above one before it; 0 where the score
        is -inf: no answer."""
        scores = np.atleast_2d(np.asarray(scores_QK, dtype=np.float64))
        there = np.isfinite(scores)
        logits = features(np.where(there, scores, 0.0)) @ np.asarray(self.weights)
        p_QK = np.where(there, 1 / (1 + np.exp(-np.clip(logits, -50, 50))), 0.0)
        falling: FloatArray = np.minimum.accumulate(p_QK, axis=1)
        return falling

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"weights": list(self.weights), "facts": self.facts}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The inverse; a ValueError, KeyError or TypeError where the values are no calibration."""
        weights = tuple(float(weight) for weight in values["weights"])
        if len(weights) != NUM_FEATURES:
            raise ValueError(f"{len(weights)} weights, expected {NUM_FEATURES}")
        return cls(weights, dict(values["facts"]))


def read_calibrations(description: Mapping[str, Any]) -> dict[str, Calibration]:
    """By mode, from primexmc.json. Models of before have one alone, of the mode that predicts when nobody names one;
    raises as `from_dict` does."""
    if "calibrations" in description:
        return {mode: Calibration.from_dict(values) for mode, values in description["calibrations"].items()}
    if description.get("calibration") is None:
        return {}
    return {default_mode(description): Calibration.from_dict(description["calibration"])}


def default_mode(description: Mapping[str, Any]) -> str:
    """What predicts when nobody names a mode."""
    mode: str = description["settings"].get("search", {}).get("mode", "auto")
    blend = description.get("blend") or {}
    return blend.get("best", "theta") if mode == "auto" else mode


def features(scores_QK: FloatArray) -> FloatArray:
    """Of each answer: 1, log of rank and 1 / rank, and the same three times the score."""
    rank_K = np.arange(1, scores_QK.shape[1] + 1)
    of_rank_K3 = np.stack([np.ones(len(rank_K)), np.log(rank_K), 1 / rank_K], axis=-1)
    of_rank_QK3 = np.broadcast_to(of_rank_K3, (*scores_QK.shape, 3))
    return np.concatenate([of_rank_QK3, of_rank_QK3 * scores_QK[..., None]], axis=-1)
