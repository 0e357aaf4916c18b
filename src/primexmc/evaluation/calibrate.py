"""From scores to probabilities: fits a calibration on held-out queries, and measures how far it is off.

Shapes: Q queries, K answers a query, P (query, answer) pairs, F features.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ..data.corpus import Split
from ..fusion.blend import MODES, OF_CLASSIFIER, Weights
from ..fusion.candidates import best_of
from ..model.calibration import Calibration, features
from ..model.model import PrimeModel
from ..model.voices import Heard, Voices
from .hits import find_hits

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Ranked = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]
TOP = 100
FOLDS = 5
RIDGE = 1.0  # keeps the weights finite where right and wrong answers can be told apart without an error
STEPS = 50
BINS = 15
FIRST = 5  # as many are predicted by default


def calibrate(model: PrimeModel, held_out: Split) -> dict[str, Calibration]:
    """For each mode of the model a calibration from queries that it was not trained on; without those where nothing
    can be learned."""
    modes = [mode for mode in MODES if mode not in OF_CLASSIFIER or model.classifier_LD is not None]
    weights = {"theta": Weights()} if model.blend is None else {mode: model.blend.of(mode) for mode in modes}
    blocks: dict[str, list[Ranked]] = {mode: [] for mode in weights}
    size, voices = model.settings.search.batch_size, Voices(model)
    for start in range(0, len(held_out), size):
        queries = held_out.take(np.arange(start, min(start + size, len(held_out))))
        for mode, ranked in _ranked(model, voices, queries, weights):
            blocks[mode].append(ranked)
    found = {}
    for mode, of_mode in blocks.items():
        ids, scores = (np.concatenate(arrays) for arrays in zip(*of_mode, strict=True))
        found[mode] = fit_calibration(ids, scores, held_out.positives)
    return {mode: one for mode, one in found.items() if one is not None}


def _ranked(
    model: PrimeModel, voices: Voices, queries: Split, weights: dict[str, Weights]
) -> Iterator[tuple[str, Ranked]]:
    """The best labels of each mode, as `rank` gives them; all voices are heard but once of the same candidates."""
    own = weights.values()
    everything = Weights(float(any(one.asks_memory for one in own)), float(any(one.asks_words for one in own)))
    h_QD, top = model.encode(queries.texts), max(TOP, model.settings.fusion.candidates)
    heard: Heard | None = None
    for share in sorted({one.classifier for one in own}):
        found = model.search(h_QD, top, queries.filtered, classifier=share)
        known = None if heard is None else heard.neighbours
        heard = voices.hear(queries.texts, h_QD, *found, everything, known)
        for mode, one in weights.items():
            if one.classifier == share:
                yield mode, best_of(heard.ids_QC, voices.together(heard, one), TOP)


def fit_calibration(ids_QK: npt.ArrayLike, scores_QK: npt.ArrayLike, positives: csr_matrix) -> Calibration | None:
    """None where nothing can be learned: hardly a query, or answers that are all right or all wrong.

    Its facts tell the expected calibration error in percent on folds that it was not fitted on: `error_at_1`,
    `error_at_5` of the first answers of each query, and `error` of all.
    """
    ids, scores = np.asarray(ids_QK), np.asarray(scores_QK, dtype=np.float64)
    right_QK, there_QK = right_answers(ids, positives), np.isfinite(scores)
    if len(ids) < FOLDS or right_QK[there_QK].all() or not right_QK.any():
        return None
    p_QK = _held_out(scores, right_QK)

    def error(first: int) -> float:
        some_QK = there_QK & (np.arange(ids.shape[1]) < first)
        return round(100 * calibration_error(p_QK[some_QK], right_QK[some_QK]), 2)

    facts = {
        "queries": len(ids),
        "answers_a_query": ids.shape[1],
        "error_at_1": error(1),
        f"error_at_{FIRST}": error(FIRST),
        "error": error(ids.shape[1]),
    }
    return _fit(scores, right_QK, facts)


def right_answers(ids_QK: npt.NDArray[np.integer[Any]], positives: csr_matrix) -> BoolArray:
    """Which answers are true labels of their query."""
    hits = find_hits(ids_QK, positives)
    right_QK = np.zeros(ids_QK.shape, dtype=bool)
    right_QK[hits.rows_H, hits.ranks_H] = True
    return right_QK


def calibration_error(p_P: FloatArray, right_P: BoolArray, bins: int = BINS) -> float:
    """Expected calibration error: in bins of equally many answers, by rising probability, how far the mean probability
    is from the share of right answers; averaged over all answers."""
    order = np.argsort(p_P, kind="stable")
    gaps = [
        len(part) * abs(p_P[part].mean() - right_P[part].mean()) for part in np.array_split(order, bins) if len(part)
    ]
    return float(sum(gaps) / max(1, len(order)))


def _held_out(scores_QK: FloatArray, right_QK: BoolArray) -> FloatArray:
    """Each fold's probabilities by a calibration that was fitted on the others."""
    fold_Q = np.random.default_rng(0).permutation(len(scores_QK)) % FOLDS
    p_QK = np.zeros(scores_QK.shape)
    for fold in range(FOLDS):
        others, own = fold_Q != fold, fold_Q == fold
        p_QK[own] = _fit(scores_QK[others], right_QK[others], {})(scores_QK[own])
    return p_QK


def _fit(scores_QK: FloatArray, right_QK: BoolArray, facts: dict[str, Any]) -> Calibration:
    """Logistic regression by Newton's method."""
    there_QK = np.isfinite(scores_QK)
    x_PF = features(np.where(there_QK, scores_QK, 0.0))[there_QK]
    y_P = right_QK[there_QK].astype(np.float64)
    weights = np.zeros(x_PF.shape[1])
    for _ in range(STEPS):
        p_P = 1 / (1 + np.exp(-np.clip(x_PF @ weights, -30, 30)))
        gradient = x_PF.T @ (p_P - y_P) + RIDGE * weights
        hessian = (x_PF * (p_P * (1 - p_P))[:, None]).T @ x_PF + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return Calibration(tuple(weights.tolist()), facts)
