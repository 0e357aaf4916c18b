"""Calibration: does it find the curve that made the answers, and is its error counted right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from primexmc.evaluation.calibrate import calibration_error, fit_calibration
from primexmc.model.calibration import NUM_FEATURES, Calibration

NUM_LABELS = 50


def made_up(num_queries, num_answers, seed=0):
    """Scores, and positives that are drawn with known probabilities."""
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.uniform(0, 0.9, (num_queries, num_answers)))[:, ::-1]
    ids = np.array([rng.permutation(NUM_LABELS)[:num_answers] for _ in range(num_queries)])
    p = 1 / (1 + np.exp(3 - 6 * scores + 0.5 * np.log(np.arange(1, num_answers + 1))))
    right = rng.random(p.shape) < p
    positives = np.zeros((num_queries, NUM_LABELS), dtype=np.float32)
    for query in range(num_queries):
        positives[query, ids[query, right[query]]] = 1
    return ids, scores, csr_matrix(positives), p


def test_it_finds_the_curve_that_made_the_answers():
    ids, scores, positives, p = made_up(3000, 10)
    found = fit_calibration(ids, scores, positives)
    assert np.abs(found(scores) - p).mean() < 0.02
    assert found.facts["queries"] == 3000 and found.facts["answers_a_query"] == 10
    assert found.facts["error"] < 2 and found.facts["error_at_1"] < 4
    assert np.abs(found(scores) - p).mean() < 0.2 * np.abs(scores - p).mean(), "a score alone is no probability"


def test_the_error_it_tells_is_of_folds_it_has_not_seen():
    """Labels at random: whatever it learns from 20 queries is wrong for others, and it says so."""
    rng = np.random.default_rng(3)
    ids, scores, _, _ = made_up(20, 5)
    found = fit_calibration(ids, scores, csr_matrix((rng.random((20, NUM_LABELS)) < 0.5).astype(np.float32)))
    assert found.facts["error"] > 2


def test_the_error_against_loops():
    rng = np.random.default_rng(1)
    p, right = rng.random(101), rng.random(101) < 0.4
    pairs = sorted(zip(p.tolist(), right.tolist(), strict=True))
    total, start = 0.0, 0
    for number in range(15):
        size = 101 // 15 + (number < 101 % 15)
        part = pairs[start : start + size]
        start += size
        total += abs(sum(one for one, _ in part) - sum(hit for _, hit in part))
    assert start == 101
    assert calibration_error(p, right) == pytest.approx(total / 101)
    assert calibration_error(np.array([0.25] * 4), np.array([True, False, False, False]), bins=1) == 0
    assert calibration_error(np.empty(0), np.empty(0, dtype=bool)) == 0


def test_answers_that_are_not_there_have_no_probability_and_teach_nothing():
    ids, scores, positives, _ = made_up(400, 6)
    whole = fit_calibration(ids, scores, positives)
    ids = np.hstack([ids, np.full((400, 3), -1)])
    scores = np.hstack([scores, np.full((400, 3), -np.inf)])
    found = fit_calibration(ids, scores, positives)
    np.testing.assert_allclose(found.weights, whole.weights)
    assert (found(scores)[:, 6:] == 0).all() and (found(scores)[:, :6] > 0).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_to_learn_from(share):
    ids, scores, _, _ = made_up(30, 5)
    assert fit_calibration(ids, scores, csr_matrix(np.full((30, NUM_LABELS), share, dtype=np.float32))) is None
    assert fit_calibration(ids[:3], scores[:3], made_up(3, 5)[2]) is None


def test_there_and_back_as_plain_values():
    one = Calibration(tuple(range(NUM_FEATURES)), {"queries": 7})
    assert Calibration.from_dict(one.to_dict()) == one
    for values in ({}, {"weights": [1.0], "facts": {}}, {"weights": ["x"] * NUM_FEATURES, "facts": {}}):
        with pytest.raises((KeyError, ValueError)):
            Calibration.from_dict(values)
