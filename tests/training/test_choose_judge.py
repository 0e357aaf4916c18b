"""When a model gets a judge, and what it then says, against loops over voices and features."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from fusion.test_judge import made_judge, slow_judgement
from model.cases_of_labels import NUM_LABELS, made_model
from model.tiny import random_texts
from scipy.sparse import csr_matrix
from training.cases import split_of

from primexmc.evaluation.calibrate import _ranked, calibrate
from primexmc.fusion.blend import Blend, Weights
from primexmc.training import choose_blend as module
from primexmc.training.choose_blend import choose_blend
from primexmc.training.fit_judge import FEWEST

NEIGHBOURS = 7


def model_of(**values):
    return made_model(**{"fusion.neighbours": NEIGHBOURS, "fusion.candidates": 12} | values)


def held_out(size=2 * FEWEST):
    rng = np.random.default_rng(5)
    return split_of(random_texts(5, size), [rng.choice(NUM_LABELS, 2, replace=False) for _ in range(size)], NUM_LABELS)


def judgement(sign):
    """What held-out queries would say of a judge that knows, or of one that knows it all wrong."""
    return lambda x_QCF, right_QC: (sign * right_QC).astype(np.float32)


@pytest.mark.parametrize("filtered", [False, True])
def test_what_a_model_with_a_judge_says(filtered):
    model, texts = model_of(), random_texts(6, 9)
    weights = Weights(memory=0.2, temperature=0.1, judge=made_judge(without=("words",)))
    model.blend = Blend({"all": weights}, "all")
    banned = np.random.default_rng(7).random((9, NUM_LABELS)) < (0.8 if filtered else 0)
    ids, scores = model.rank(texts, 20, csr_matrix(banned.astype(np.float32)))
    h, z, h_ND = (
        model.encode(texts).astype(float),
        model.prototypes_LD.double().numpy(),
        model.memory.h_ND.double().numpy(),
    )
    holds = model.memory.positives.toarray() > 0
    for row in range(len(texts)):
        cosines, near = z @ h[row], h_ND @ h[row]
        known = np.argsort(-near, kind="stable")[:NEIGHBOURS]
        allowed = [label for label in range(NUM_LABELS) if not banned[row, label]]
        proposed, expected = sorted(allowed, key=lambda label: -cosines[label])[:20], {}
        for label in proposed:
            holding = [n for n in known if holds[n, label]]
            share = {t: sum(np.exp(near[holding] / t)) / sum(np.exp(near[known] / t)) for t in (0.1, 0.05)}
            closest = max(near[holding], default=0.0)
            total = cosines[label] + 0.2 * share[0.1]
            voted, queries = float(closest != 0), math.log(1 + max(1, holds[:, label].sum()))
            x = [total, cosines[label], 0.0, share[0.05], closest, voted, queries]
            expected[label] = total + slow_judgement(weights.judge, x)
        found = {int(label): float(score) for label, score in zip(ids[row], scores[row], strict=True) if label >= 0}
        assert found.keys() == expected.keys() and found == pytest.approx(expected, abs=2e-5)
        assert np.isneginf(scores[row][ids[row] < 0]).all() and (np.diff(scores[row][: len(found)]) <= 0).all()
    one_ids, one_scores = model.rank(texts[:1], 5, csr_matrix(banned[:1].astype(np.float32)))
    assert one_ids.tolist() == ids[:1, :5].tolist() and one_scores[0] == pytest.approx(scores[0, :5], abs=1e-6)


def test_it_is_taken_where_it_is_better_on_others_queries(monkeypatch):
    model, queries = model_of(), held_out()
    without = choose_blend(model_of(**{"fusion.judge": False}), queries)
    monkeypatch.setattr(module, "held_out_judgement", judgement(1))
    blend = choose_blend(model, queries)
    assert blend.of("all").judge is not None and blend.best == "all"
    assert dataclasses.replace(blend.of("all"), judge=None) == without.of("all")
    assert not blend.of("all").judge.asks_words, "this model has no words"
    assert all(blend.of(mode) == without.of(mode) for mode in ("theta", "memory", "lexical"))
    monkeypatch.setattr(module, "held_out_judgement", judgement(-1))
    assert choose_blend(model, queries) == without
    assert without.of("all").judge is None


@pytest.mark.parametrize("case", ["too few queries", "no voice", "no memory wanted", "one query", "switched off"])
def test_where_none_can_be(case, monkeypatch):
    """`fusion.memory=false` keeps the memory for explanations: the judge does not hear it either."""
    if case != "too few queries":
        monkeypatch.setattr(module, "held_out_judgement", judgement(1))
    queries = held_out({"too few queries": FEWEST, "one query": 1}.get(case, 2 * FEWEST))
    model = model_of(**{"fusion.memory": case != "no memory wanted", "fusion.judge": case != "switched off"})
    if case == "no voice":
        model.memory = None
        model.labels_changed()
    blend = choose_blend(model, queries)
    assert blend.of("all").judge is None


def test_calibration_is_of_the_scores_that_rank_gives(monkeypatch):
    monkeypatch.setattr(module, "held_out_judgement", judgement(1))
    model, queries = model_of(), held_out()
    model.blend = choose_blend(model, queries)
    ranked = dict(_ranked(model, model.voices, queries, model.blend.weights))
    for mode in ("theta", "memory", "all"):
        model.mode = mode
        ids, scores = model.rank(queries.texts, 100)
        assert np.array_equal(ranked[mode][0], ids)
        np.testing.assert_allclose(ranked[mode][1], scores, atol=1e-6)
    model.mode = "all"
    assert model.calibrations.get("all") is None
    model.calibrations = calibrate(model, queries)
    chances = model.calibrated(scores)
    assert (np.diff(chances, axis=1) <= 0).all() and 0 < chances[:, 0].min() <= chances.max() < 1
