"""The judge: a small network that has learned on held-out queries how far each voice is to be trusted, and when.

What it says is added to the weighted sum of the voices. Votes mean more where the nearest query is near, words more
where a label has many queries; a weight for each voice cannot tell.
Shapes: Q queries, C candidates a query, F features, H hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SCALE = 0.05  # of what it says, next to cosines
FARTHEST = 5.0  # standard deviations; beyond what it has seen it says no more
FEATURES = ("sum", "cosine", "words", "votes", "nearest", "voted", "queries")
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Judge:
    """tanh(x A + a) b + x d on standardised features; plain numbers, kept with the blend."""

    mean_F: tuple[float, ...]
    spread_F: tuple[float, ...]
    a_FH: Rows
    a_H: tuple[float, ...]
    b_H: tuple[float, ...]
    d_F: tuple[float, ...]

    def __call__(self, x_QCF: Floats) -> Floats:
        """What it adds to each candidate's score."""
        x_PF = self.standardised(x_QCF).reshape(-1, len(self.mean_F))
        hidden_PH = np.tanh(x_PF @ np.array(self.a_FH, np.float32) + np.array(self.a_H, np.float32))
        said_P = hidden_PH @ np.array(self.b_H, np.float32) + x_PF @ np.array(self.d_F, np.float32)
        return np.asarray(SCALE * said_P.reshape(x_QCF.shape[:2]), dtype=np.float32)

    def standardised(self, x_QCF: Floats) -> Floats:
        """Features as the network takes them."""
        mean_F, spread_F = np.array(self.mean_F, np.float32), np.array(self.spread_F, np.float32)
        x_QCF = (x_QCF - mean_F) / spread_F
        return np.clip(x_QCF, -FARTHEST, FARTHEST)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Judge:
        """The inverse of `dataclasses.asdict`, also from JSON; a KeyError or ValueError where it is none."""
        rows = tuple(_numbers(row) for row in values["a_FH"])
        vectors = {name: _numbers(values[name]) for name in ("mean_F", "spread_F", "a_H", "b_H", "d_F")}
        judge = cls(a_FH=rows, **vectors)
        F, H = len(FEATURES), len(judge.a_H)
        if not (len(judge.mean_F) == len(judge.spread_F) == len(judge.d_F) == len(judge.a_FH) == F):
            raise ValueError(f"a judge has {F} features")
        if len(judge.b_H) != H or any(len(row) != H for row in judge.a_FH) or min(judge.spread_F) <= 0:
            raise ValueError("the judge's numbers do not belong together")
        return judge


def features(sum_QC: Floats, cosine_QC: Floats, words_QC: Floats | None, votes: Votes, queries_QC: Floats) -> Floats:
    """x_QCF in the order of FEATURES. `votes` are the memory's shares and the cosine of the nearest query with the
    label (0 without one), None where there is no memory; `queries_QC` counts the training queries of each candidate."""
    nothing_QC = np.zeros_like(sum_QC)
    votes_QC, nearest_QC = (nothing_QC, nothing_QC) if votes is None else votes
    words_QC = nothing_QC if words_QC is None else words_QC
    there_QC = np.isfinite(sum_QC)
    of_labels_QC = np.log1p(np.maximum(queries_QC, 1))  # of a label without a query it has seen none that was right
    columns = (sum_QC, cosine_QC, words_QC, votes_QC, nearest_QC, nearest_QC > 0, of_labels_QC)
    return np.stack([np.where(there_QC, column, 0) for column in columns], axis=2).astype(np.float32)


Votes = tuple[Floats, Floats] | None


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
