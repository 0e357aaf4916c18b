"""From scores to probabilities: fits a calibration on held-out queries, and measures how far it is off.

Shapes: Q queries, K answers a query, P (query, answer) pairs, F features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ..data.corpus import Split
from ..model.calibration import Calibration, features
from ..model.model import PrimeModel
from .hits import find_hits

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
TOP = 100
FOLDS = 5
RIDGE = 1.0  # keeps the weights finite where right and wrong answers can be told apart without an error
STEPS = 50
BINS = 15
FIRST = 5  # as many are predicted by default


def calibrate(model: PrimeModel, held_out: Split) -> Calibration | None:
    """A calibration of the model from queries that it was not trained on; None where nothing can be learned."""
    size = model.settings.search.batch_size
    blocks = []
    for start in range(0, len(held_out), size):
        rows = slice(start, start + size)
        filtered = None if held_out.filtered is None else held_out.filtered[rows]
        blocks.append(model.rank(held_out.texts[rows], TOP, filtered))
    ids, scores = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return fit_calibration(ids, scores, held_out.positives)


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
