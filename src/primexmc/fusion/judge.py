"""The judge: a small network that has learned on held-out queries how far each voice is to be trusted, and when.

What it says is added to the weighted sum of the voices. Votes mean more where the nearest query is near, words more
where a label has many queries; a weight for each voice cannot tell.
Shapes: Q queries, C candidates a query, P all candidates, F features, H hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
FEATURES = ("sum", "cosine", "words", "votes", "nearest", "voted", "queries")
OF_WORDS, OF_MEMORY = FEATURES[2:3], FEATURES[3:]
SCALE = 0.05  # of what it says, next to cosines
FARTHEST = 5.0  # standard deviations; beyond what it has seen it says no more
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
        """What it adds to each candidate's score: a finite number, also where there is no candidate."""
        x_PF = standardised(x_QCF, self.mean_F, self.spread_F).reshape(-1, len(FEATURES))
        hidden_PH = np.tanh(x_PF @ np.array(self.a_FH, np.float32) + np.array(self.a_H, np.float32))
        said_P = hidden_PH @ np.array(self.b_H, np.float32) + x_PF @ np.array(self.d_F, np.float32)
        return np.asarray(SCALE * said_P.reshape(x_QCF.shape[:2]), dtype=np.float32)

    @property
    def asks_memory(self) -> bool:
        return self._uses(OF_MEMORY)

    @property
    def asks_words(self) -> bool:
        return self._uses(OF_WORDS)

    def _uses(self, names: tuple[str, ...]) -> bool:
        """Where a voice was silent when it was fitted, its features have no weights."""
        return any(self.d_F[at] or any(self.a_FH[at]) for at in map(FEATURES.index, names))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Judge:
        """The inverse of `dataclasses.asdict`, also from JSON; a KeyError, TypeError or ValueError where it is none."""
        rows = tuple(_numbers(row) for row in values["a_FH"])
        vectors = {name: _numbers(values[name]) for name in ("mean_F", "spread_F", "a_H", "b_H", "d_F")}
        judge = cls(a_FH=rows, **vectors)
        F, H = len(FEATURES), len(judge.a_H)
        if not (len(judge.mean_F) == len(judge.spread_F) == len(judge.d_F) == len(judge.a_FH) == F):
            raise ValueError(f"a judge has {F} features")
        if len(judge.b_H) != H or any(len(row) != H for row in judge.a_FH) or min(judge.spread_F) <= 0:
            raise ValueError("the judge's numbers do not belong together")
        return judge


def features(sum_QC: Floats, cosine_QC: Floats, words_QC: Floats | None, votes: tuple[Floats, ...] | None) -> Floats:
    """x_QCF in the order of FEATURES; a sum of -inf is no candidate.

    `votes` are the memory's shares, the cosine of the nearest query with the label, and each label's number of queries.
    A voice that is not there says 0.
    """
    nothing_QC = np.zeros_like(sum_QC)
    votes_QC, nearest_QC, queries_QC = (nothing_QC, nothing_QC, nothing_QC) if votes is None else votes
    words_QC = nothing_QC if words_QC is None else words_QC
    of_label_QC = np.log1p(np.maximum(queries_QC, 1))  # of labels without a query it has seen none that was right
    voices = (cosine_QC, words_QC, votes_QC, nearest_QC, votes_QC > 0, of_label_QC)
    there_QC = np.isfinite(sum_QC)
    return np.stack([sum_QC, *(np.where(there_QC, voice, 0) for voice in voices)], axis=2).astype(np.float32)


def standardised(x_QCF: Floats, mean_F: Any, spread_F: Any) -> Floats:
    """Features as the network takes them."""
    mean, spread = np.array(mean_F, np.float32), np.array(spread_F, np.float32)
    clipped_QCF: Floats = np.clip((x_QCF - mean) / spread, -FARTHEST, FARTHEST)
    return clipped_QCF


def _numbers(values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not np.isfinite(numbers).all():
        raise ValueError("a number of the judge's is none")
    return numbers
