"""Weights chosen on validation: never worse there than the prototypes alone, and kept with the model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from training.cases import make_corpus

from primexmc import PrimeModel, evaluate
from primexmc.errors import UserError
from primexmc.training import fit_lexical
from primexmc.training.choose_blend import _Trial, choose_blend
from primexmc.training.fit_lexical import affordable, heaviest, nearest_wrong_labels
from primexmc.training.train import train

FEW = {"training.epochs": 3, "training.batch_size": 32, "encoder.name": "static", "training.validate_every": 1}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus()


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    place = tmp_path_factory.mktemp("blend") / "model"
    train(corpus, "static-cpu", FEW, out=place, quiet=True)
    return PrimeModel.load(place, device="cpu")


def test_auto_is_the_best_mode_on_validation(model, corpus):
    held_out = corpus.with_validation(model.settings.data).split("val")
    trial, chosen = _Trial(model, held_out), model.blend
    model.blend = choose_blend(model, held_out)  # the stored one was chosen before the model knew these queries
    score = {mode: trial(weights) for mode, weights in model.blend.weights.items()}
    assert set(score) == {"theta", "memory", "lexical", "all"}
    assert score[model.blend.best] == max(score.values()) >= score["theta"]
    assert score["all"] >= max(score["memory"], score["lexical"]) - 1e-12
    for mode in score:  # the trial's nDCG@5 is the metric's
        model.mode = mode
        measured = evaluate(model, dataclasses.replace(corpus, test=held_out))
        assert 100 * score[mode] == pytest.approx(measured["nDCG@5"], abs=1e-6)
    model.mode, model.blend = "auto", chosen


def test_modes(model, corpus):
    texts = corpus.split("train").texts[:6]
    model.mode = "theta"
    alone = model.rank(texts, 5)
    assert np.array_equal(alone[0], model.search(model.encode(texts), 5)[0])
    model.mode = "lexical"
    ids, scores = model.rank(texts, 5)
    cosines = model.encode(texts) @ model.prototypes_LD.numpy().T
    weight = model.blend.of("lexical").lexical
    expected = np.take_along_axis(cosines, ids, 1) + weight * model.lexical.scores(texts, ids)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    model.mode = "loudest"
    with pytest.raises(UserError, match=r"search\.mode"):
        model.rank(texts, 5)
    model.mode = "auto"


def test_without_voices_prototypes_speak_alone(corpus):
    off = {"fusion.memory": False, "fusion.lexical": False}
    model = train(corpus, "static-cpu", FEW | off, quiet=True)
    assert model.blend is None and model.lexical is None
    assert model.weights.memory == model.weights.lexical == 0


def test_the_model_knows_the_held_out_queries_in_the_end(model, corpus):
    assert sorted(model.memory.texts) == sorted(corpus.split("train").texts)
    assert model.facts["trained_on_queries"] < len(model.memory)


def test_a_refit_keeps_what_validation_chose(corpus):
    model = train(corpus, "static-cpu", FEW | {"training.refit": True}, quiet=True)
    assert model.blend is not None and model.lexical is not None
    assert len(model.memory) == len(corpus.split("train"))


def test_negatives_are_the_nearest_wrong_labels(model):
    memory, z_LD = model.memory, model.prototypes_LD.double().numpy()
    filtered = memory.positives.copy()
    filtered.indices = (filtered.indices + 1) % filtered.shape[1]
    wrong = nearest_wrong_labels(model, memory, 3, filtered)
    for row in range(len(memory)):
        right = {*memory.positives[row].indices, *filtered[row].indices}
        scores = z_LD @ memory.h_ND[row].double().numpy()
        expected = [label for label in np.argsort(-scores) if label not in right][:3]
        assert set(wrong[row].indices) == set(expected)


def test_a_sample_of_queries_has_to_do(model, monkeypatch):
    monkeypatch.setattr(fit_lexical, "MOST_PRODUCTS", len(model.memory) * model.prototypes_LD.numel() / 4)
    wrong = fit_lexical.nearest_wrong_labels(model, model.memory, 3)
    assert np.array_equal(np.diff(wrong.indptr) > 0, np.arange(len(model.memory)) % 4 == 0)


def test_heaviest_words():
    x = csr_matrix(np.array([[0.1, 0.9, 0.5, 0.3], [0, 0, 0.2, 0], [0, 0, 0, 0]], dtype=np.float32))
    expected = np.array([[0, 0.9, 0.5, 0], [0, 0, 0.2, 0], [0, 0, 0, 0]], dtype=np.float32)
    assert np.array_equal(heaviest(x, 2).toarray(), expected)
    assert np.array_equal(heaviest(x, 4).toarray(), x.toarray())


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (10 * 100 * 42, (100, 40)),  # all of it
        (10 * 50 * 42, (50, 40)),  # lighter words are left out first
        (10 * 32 * 22, (32, 20)),  # then wrong labels
        (10, (32, 10)),  # but never more of them than that
    ],
)
def test_what_long_texts_can_afford(most, expected, monkeypatch):
    monkeypatch.setattr(fit_lexical, "MOST_ENTRIES", most)
    assert affordable(csr_matrix(np.ones((10, 100), dtype=np.float32)), 2.0, 40) == expected


def test_a_setting_below_the_fewest_negatives_stands(monkeypatch):
    monkeypatch.setattr(fit_lexical, "MOST_ENTRIES", 10)
    assert affordable(csr_matrix(np.ones((10, 100), dtype=np.float32)), 2.0, 5) == (32, 5)
