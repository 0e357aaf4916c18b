"""`train` with a classifier: what comes out, what validation chooses, and runs that are stopped on the way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from training.cases import assert_same_tensors, make_corpus, quick, rows_of, tensors_of

from primexmc import PrimeModel, evaluate
from primexmc.fusion.blend import MODES, OF_CLASSIFIER
from primexmc.training import fit_classifier as stage
from primexmc.training.choose_blend import SHARES, _Trial, choose_blend
from primexmc.training.saver import Interrupted, Saver
from primexmc.training.train import train

W = {
    "classifier.enabled": True,
    "prototypes.mixed": False,  # W begins with the prototypes before they are mixed
    "classifier.epochs": 3,
    "classifier.batch_size": 16,
    "classifier.learning_rate": 0.01,
}


def run(place, corpus=None, **values):
    how = {name: values.pop(name) for name in ("resume",) if name in values}
    corpus = corpus or make_corpus(60)
    return train(corpus, "static-cpu", quick(**values) | W, out=place, quiet=True, **how)


@pytest.mark.parametrize("labels", ["all", "sampled"])
@pytest.mark.parametrize("case", ["chosen", "refit", "no validation"])
def test_every_way_to_train(labels, case, tmp_path):
    values = {"refit": {"training__refit": True}, "no validation": {"training__validate_every": 0}}.get(case, {})
    made = run(tmp_path / "m", classifier__labels=labels, **values)
    model = PrimeModel.load(tmp_path / "m", device="cpu")
    assert torch.equal(model.classifier_LD, made.classifier_LD)
    assert not torch.allclose(model.classifier_LD, model.prototypes_LD, atol=1e-3)
    assert torch.equal(model.classifier_LD, stage.fit_classifier(model, model.memory)), "of all training queries"
    stages = [row["run"] for row in rows_of(tmp_path / "m") if row["phase"] == "classifier"]
    both = {"chosen": ["choose"] * 6, "refit": ["choose"] * 3 + ["refit"] * 3, "no validation": ["all"] * 3}
    assert stages == both[case]
    if case == "no validation":
        assert model.blend is None
    else:
        assert set(model.blend.weights) == set(MODES)
    for mode in OF_CLASSIFIER:
        model.mode = mode
        assert evaluate(model, make_corpus(60))["P@1"] > 40
        assert (model.calibration is None) == (case == "no validation")


def test_weights_are_the_best_on_validation(tmp_path):
    corpus = make_corpus(60)
    model = run(tmp_path / "m", corpus)
    held_out = corpus.with_validation(model.settings.data).split("val")
    model.blend = choose_blend(model, held_out)
    trial, score = _Trial(model, held_out), {}
    for mode, weights in model.blend.weights.items():
        model.mode, score[mode] = mode, trial(weights)
        measured = evaluate(model, dataclasses.replace(corpus, test=held_out))
        assert 100 * score[mode] == pytest.approx(measured["nDCG@5"], abs=1e-6)
    assert score[model.blend.best] == max(score.values())
    assert score["theta+W"] == max(trial.of_cosines(share) for share in SHARES) >= max(score["theta"], score["W"])
    assert score["W+memory"] >= score["W"] and score["all"] >= max(score["theta+W"], score["memory"], score["lexical"])


@pytest.mark.parametrize("refit", [False, True])
def test_as_if_it_had_not_been_stopped(refit, tmp_path, monkeypatch):
    """In the encoder's training, and twice in the classifier's."""
    values = {"training__refit": refit}
    run(tmp_path / "whole", **values)
    steps, ask, asked = [0], Saver.stop_if_asked, Saver.save_if_due

    def stop_if_asked(self):
        steps[0] += 1
        self._stop = steps[0] in (4, 20)
        ask(self)

    def save_if_due(self, phase, state):
        self._stop = not steps[0] and state.step == 5
        steps[0] += self._stop
        asked(self, phase, state)

    monkeypatch.setattr(Saver, "stop_if_asked", stop_if_asked)
    monkeypatch.setattr(Saver, "save_if_due", save_if_due)
    with pytest.raises(Interrupted, match="after step 5"):
        run(tmp_path / "parts", **values)
    for _ in range(2):
        with pytest.raises(Interrupted, match=r"while the classifier was trained.*--resume"):
            run(tmp_path / "parts", resume=True, **values)
    model = run(tmp_path / "parts", resume=True, **values)
    assert model.classifier_LD is not None
    assert_same_tensors(tensors_of(tmp_path / "parts"), tensors_of(tmp_path / "whole"))
    assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")


def test_going_on_with_a_model(tmp_path):
    """It keeps the settings, and its classifier is trained anew on what there is then."""
    model = run(tmp_path / "m")
    more = train(make_corpus(90), settings={"training.epochs": 2}, from_model=model, quiet=True)
    assert more.classifier_LD is not None and len(more.memory) == 90
    assert torch.equal(more.classifier_LD, stage.fit_classifier(more, more.memory))


def test_without_voices_the_classifier_is_weighed_all_the_same(tmp_path):
    model = run(tmp_path / "m", fusion__memory=False, fusion__lexical=False)
    weights = model.blend.weights
    assert all(chosen.memory == chosen.lexical == 0 for chosen in weights.values())
    assert weights["theta+W"].classifier in SHARES and np.isfinite(weights["theta+W"].classifier)
