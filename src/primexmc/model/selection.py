"""Selection: which of a model's labels may be answers, and how good they must be.

Shapes: Q queries, L labels, K answers a query.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ..data.label_finder import LabelFinder
from ..errors import UserError
from .per_label import PerLabel

if TYPE_CHECKING:
    from .model import Prediction, PrimeModel

FloatArray = npt.NDArray[np.float32]
IdArray = npt.NDArray[np.int64]
# So few are taken out of each query's search as filter pairs; with more, the labels that are left are searched alone.
MANY_BLOCKED = 256


class Selection:
    """Answers from some of the labels: those allowed (None: all) that are not blocked, by uid or name. Made once, it
    serves any number of batches."""

    def __init__(
        self,
        model: PrimeModel,
        *,
        allowed: Iterable[str] | None = None,
        blocked: Iterable[str] = (),
        threshold: float | None = None,
        by_probability: bool = False,
    ) -> None:
        self.model, self.threshold, self.by_probability = model, threshold, by_probability
        blocked_ids = _blocked(model, allowed, blocked)
        self.blocked_B = blocked_ids
        self.part, self.ids_of_part = model, np.arange(0)
        if len(blocked_ids) > MANY_BLOCKED:
            self.ids_of_part = np.setdiff1d(np.arange(len(model.labels)), blocked_ids)
            self.part = _part(model, self.ids_of_part)

    def rank(self, texts: Sequence[str], top: int, filtered: csr_matrix | None = None) -> tuple[IdArray, FloatArray]:
        """What `PrimeModel.rank` gives, without labels that are not wanted; ids are the model's."""
        if self.part is self.model:
            return self.model.rank(texts, top, self._with_blocked(filtered, len(texts)))
        if not len(self.ids_of_part):
            return np.full((len(texts), top), -1), np.full((len(texts), top), -np.inf, np.float32)
        fewer = None if filtered is None else csr_matrix(filtered)[:, self.ids_of_part]
        ids_QK, scores_QK = self.part.rank(texts, top, fewer)
        return np.where(ids_QK >= 0, self.ids_of_part[ids_QK], -1), scores_QK

    def predict(self, texts: Sequence[str], top: int = 5, filtered: csr_matrix | None = None) -> list[list[Prediction]]:
        """For each text its best labels, best first; for a text without a word, none."""
        if top < 1:
            raise UserError(f"top is at least 1, not {top}.")
        ids_QK, scores_QK = self.rank(texts, top, filtered)
        wanted_QK = (ids_QK >= 0) & self._good_enough(scores_QK)
        found = []
        for text, ids, scores, wanted in zip(texts, ids_QK, scores_QK, wanted_QK, strict=True):
            wanted &= bool(text) and not text.isspace()
            row = zip(ids[wanted].tolist(), scores[wanted].tolist(), strict=True)
            found.append([self.model.prediction(label, score) for label, score in row])
        return found

    def _good_enough(self, scores_QK: FloatArray) -> npt.NDArray[np.bool_]:
        if self.threshold is None:
            return np.ones(scores_QK.shape, dtype=bool)
        values: Any = self.model.calibrated(scores_QK) if self.by_probability else scores_QK
        return np.asarray(values >= self.threshold)

    def _with_blocked(self, filtered: csr_matrix | None, num_queries: int) -> csr_matrix | None:
        """The blocked labels as filter pairs of every query."""
        B = len(self.blocked_B)
        if B == 0:
            return filtered
        columns, starts = np.tile(self.blocked_B, num_queries), np.arange(num_queries + 1) * B
        shape = (num_queries, len(self.model.labels))
        pairs = csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape=shape)
        return pairs if filtered is None else csr_matrix(pairs + csr_matrix(filtered))


def _blocked(model: PrimeModel, allowed: Iterable[str] | None, blocked: Iterable[str]) -> IdArray:
    """All that may not be answers, rising."""
    for name, words in (("allowed", allowed), ("blocked", blocked)):
        if isinstance(words, str):
            raise UserError(f'{name} is a list of label uids or names; for one label write ["..."].')
    if allowed is None and not blocked:
        return np.arange(0)
    finder, is_blocked_L = LabelFinder(model.labels), np.zeros(len(model.labels), dtype=bool)
    if allowed is not None:
        is_blocked_L[:] = True
        is_blocked_L[finder.find_all(allowed, "allowed labels")] = False
    is_blocked_L[finder.find_all(blocked, "blocked labels")] = True
    return np.flatnonzero(is_blocked_L)


def _part(model: PrimeModel, ids: IdArray) -> PrimeModel:
    """The same model with these labels alone."""
    some, memory = PerLabel.of(model).take(ids), model.memory
    part = dataclasses.replace(
        model,
        labels=some.labels,
        label_counts_L=some.label_counts_L,
        prototypes_LD=some.prototypes_LD,
        centroids=some.centroids,
        trained_L=some.trained_L,
        classifier_LD=some.classifier_LD,
        lexical=model.lexical and model.lexical.with_labels(ids),
        memory=memory and dataclasses.replace(memory, positives=csr_matrix(memory.positives[:, ids])),
    )
    part.mode = model.mode
    return part
