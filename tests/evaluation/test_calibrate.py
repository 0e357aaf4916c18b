"""Calibration: does it find the curve that made the answers, and is its error counted right."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc import Corpus, UserError, train
from primexmc.evaluation.calibrate import TOP, calibrate, calibration_error, fit_calibration
from primexmc.fusion.blend import DEFAULTS, MODES, Blend
from primexmc.model.calibration import NUM_FEATURES, Calibration, read_calibrations

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


@functools.cache
def trained():
    """Trained for a moment on two kinds of word; memory and words have something to say."""
    words = ["kettle", "lamp", "chair", "ship", "storm", "tree"]
    rng = np.random.default_rng(0)
    rows = [sorted(rng.choice(6, 2, replace=False).tolist()) for _ in range(160)]
    texts = [f"{words[a]} and {words[b]} number {number % 17}" for number, (a, b) in enumerate(rows)]
    corpus = Corpus.from_lists(texts, [[words[a], words[b]] for a, b in rows])
    settings = {"training.epochs": 2, "training.validate_every": 1, "training.device": "cpu"}
    return train(corpus, "static-cpu", settings, quiet=True), corpus


def model_with_voices():
    model, corpus = trained()
    return copy.copy(model), corpus


def test_each_mode_has_a_calibration_of_its_own():
    model, corpus = model_with_voices()
    model.blend = Blend(DEFAULTS, "all")
    noise = torch.randn(model.prototypes_LD.shape, generator=torch.Generator().manual_seed(0))
    model.classifier_LD = torch.nn.functional.normalize(model.prototypes_LD + 0.05 * noise, dim=1)
    held_out = corpus.with_validation(model.settings.data).val
    found = calibrate(model, held_out)
    assert set(found) == set(MODES)
    assert len({one.weights for one in found.values()}) == len(MODES), "other scores, another curve"
    for mode, calibration in found.items():
        model.mode = mode
        ids, scores = model.rank(held_out.texts, TOP)
        expected = fit_calibration(ids, scores, held_out.positives)
        np.testing.assert_allclose(calibration(scores), expected(scores), atol=1e-6)
    model.calibrations = found
    for mode in ("auto", *MODES):
        model.mode = mode
        own = found["all" if mode == "auto" else mode]
        np.testing.assert_array_equal(model.calibrated([[0.6, 0.3]]), own([[0.6, 0.3]]))


def test_a_mode_without_its_own_is_refused():
    model, _ = model_with_voices()
    model.calibrations = {"theta": model.calibrations["theta"]}
    model.mode = "all"
    with pytest.raises(UserError, match=r'no probabilities in mode "all": they were fitted for theta; predict in one'):
        model.probabilities(model.predict(["a kettle"]))
    model.mode = "theta"
    assert 0 < model.probabilities(model.predict(["a kettle"]))[0][0] < 1


def test_models_of_before_have_that_of_the_mode_that_predicts():
    one = Calibration(tuple(range(NUM_FEATURES)), {})
    old = {"settings": {"search": {"mode": "auto"}}, "calibration": one.to_dict()}
    assert read_calibrations(old) == {"theta": one}
    assert read_calibrations(old | {"blend": {"best": "memory"}}) == {"memory": one}
    assert read_calibrations(old | {"settings": {"search": {"mode": "lexical"}}}) == {"lexical": one}
    assert read_calibrations(old | {"calibration": None}) == {}
    assert read_calibrations({"calibrations": {"all": one.to_dict()}}) == {"all": one}


def test_a_later_answer_is_never_likelier():
    """The curve alone would make rank 2 with nearly the same score likelier than rank 1."""
    rising = Calibration((0.0, 2.0, 0.0, 1.0, 0.0, 0.0))
    p_1K = rising([[0.5, 0.49, 0.2, -np.inf]])[0]
    assert p_1K[0] == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert p_1K[1] == p_1K[0] == p_1K[2] and p_1K[3] == 0
    assert (np.diff(Calibration((0.0, -1.0, 0.0, 1.0, 0.0, 0.0))([[0.5, 0.4, 0.3]])) < 0).all()
