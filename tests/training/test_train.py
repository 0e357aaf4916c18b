"""train(): what it chooses, what it trains on, and data of odd shapes."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from model.tiny import THINGS, batch_of
from training.cases import (
    assert_same_tensors,
    corpus_of,
    losses_of,
    make_corpus,
    make_split,
    quick,
    rows_of,
    split_of,
    tensors_of,
)

from primexmc.data.corpus import Corpus, Labels
from primexmc.errors import UserError
from primexmc.evaluation.calibrate import calibrate
from primexmc.evaluation.evaluate import evaluate
from primexmc.model.model import PrimeModel
from primexmc.training.train import train


def run(corpus, place=None, **values):
    return train(corpus, "static-cpu", quick(**values), out=place, quiet=True)


def test_it_learns(tmp_path):
    corpus = make_corpus(200)
    model = run(corpus, tmp_path / "m", training__epochs=20)
    losses = losses_of(tmp_path / "m")
    assert len(losses) == 20 and losses[-1] < 0.6 * losses[0]
    assert evaluate(model, corpus)["P@1"] > 95
    found = model.predict(["a red castle and an old ship"], 2)[0]
    assert {one.label for one in found} == {"castle", "ship"}


@pytest.mark.parametrize("values", [{}, {"loss.name": "margin", "prototypes.centroid_mode": "ema"}])
def test_the_same_seed_is_the_same_run_and_another_is_not(tmp_path, values):
    corpus = make_corpus(60)
    for place, seed in (("one", 3), ("two", 3), ("three", 4)):
        run(corpus, tmp_path / place, training__seed=seed, **values)
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")
    assert_same_tensors(tensors_of(tmp_path / "one"), tensors_of(tmp_path / "two"))
    assert losses_of(tmp_path / "one") != losses_of(tmp_path / "three")


def test_the_log(tmp_path):
    run(make_corpus(60), tmp_path / "m", training__validate_every=2)
    rows = [json.loads(line) for line in (tmp_path / "m" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = [row for row in rows if row["phase"] == "train"]
    assert [row["epoch"] for row in trained] == [1, 2, 3, 4, 5] and [row["step"] for row in trained] == [
        3,
        6,
        9,
        12,
        15,
    ]
    assert all(row["loss"] > 0 and 0 <= row["violators"] <= 1 and row["queries_per_s"] > 0 for row in trained)
    validated = [row for row in rows if row["phase"] == "validation"]
    assert [row["epoch"] for row in validated] == [2, 4, 5], "and after the last one"
    assert all(0 <= row["nDCG@5"] <= 100 for row in validated)


def test_the_epoch_that_was_best_is_kept(tmp_path, monkeypatch):
    scores = iter([10.0, 40.0, 30.0, 40.0, 20.0])
    seen = []

    def fake(self, state):
        seen.append({name: value.clone() for name, value in state.network.state_dict().items()})
        return dict.fromkeys(("P@1", "P@5", "nDCG@5", "PSP@5", "R@100"), next(scores))

    monkeypatch.setattr("primexmc.training.validate.Validator.__call__", fake)
    model = run(make_corpus(60))
    held_out = make_corpus(60).with_validation(model.settings.data).val
    assert model.calibration.facts["queries"] == len(held_out)
    assert model.calibrations != calibrate(model, held_out)  # the model that it was fitted with did not know them yet
    assert model.facts["epochs"] == 4 and model.facts["validation"]["nDCG@5"] == 40, "the last of equals"
    assert all(torch.equal(value, seen[3][name]) for name, value in model.network.state_dict().items())
    assert not all(torch.equal(value, seen[4][name]) for name, value in model.network.state_dict().items())


@pytest.mark.parametrize("own_validation", [True, False])
def test_the_refit_is_on_all_for_the_epochs_that_were_best(tmp_path, monkeypatch, own_validation):
    scores = iter([10.0, 40.0, 30.0, 30.0, 20.0])
    monkeypatch.setattr(
        "primexmc.training.validate.Validator.__call__",
        lambda self, state: dict.fromkeys(("P@1", "P@5", "nDCG@5", "PSP@5", "R@100"), next(scores)),
    )
    corpus = make_corpus(60)
    if own_validation:
        corpus = dataclasses.replace(corpus, val=make_split(7, 20))
    model = run(corpus, tmp_path / "m", training__refit=True)
    held_out = corpus.with_validation(model.settings.data).val
    assert model.calibration.facts["queries"] == len(held_out), "from the phase that did not see them"
    assert PrimeModel.load(tmp_path / "m", device="cpu").calibrations == model.calibrations
    rows = [row for row in rows_of(tmp_path / "m") if row["phase"] == "train"]
    assert [(row["run"], row["epoch"]) for row in rows] == [("choose", n) for n in range(1, 6)] + [
        ("refit", 1),
        ("refit", 2),
    ]
    assert model.facts["trained_on_queries"] == (80 if own_validation else 60) and model.facts["epochs"] == 2
    assert model.num_train_queries == 60 and model.label_counts_L.sum() == 120, "propensities: of the published train"
    assert rows[-1]["step"] == 2 * (5 if own_validation else 4)


def test_the_refit_follows_the_schedule_of_all_epochs(tmp_path, monkeypatch):
    """As a run on everything that is stopped after the best epoch."""
    scores = iter([10.0, 40.0, 30.0, 30.0, 20.0])
    monkeypatch.setattr(
        "primexmc.training.validate.Validator.__call__",
        lambda self, state: dict.fromkeys(("P@1", "P@5", "nDCG@5", "PSP@5", "R@100"), next(scores)),
    )
    corpus = make_corpus(60)
    run(corpus, tmp_path / "refit", training__refit=True)
    run(corpus, tmp_path / "all", training__validate_every=0)
    refit = [row["loss"] for row in rows_of(tmp_path / "refit") if row["run"] == "refit"]
    assert refit == [row["loss"] for row in rows_of(tmp_path / "all")][:2]


def test_without_validation_the_last_epoch_of_all_queries(tmp_path):
    model = run(make_corpus(60), tmp_path / "m", training__validate_every=0)
    assert {row["phase"] for row in rows_of(tmp_path / "m")} == {"train"}
    assert model.facts["epochs"] == 5 and model.facts["validation"] == {} and model.facts["trained_on_queries"] == 60


def test_a_refit_without_validation_is_said_to_be_none(capfd):
    train(make_corpus(60), "static-cpu", quick(training__validate_every=0, training__refit=True, training__epochs=1))
    assert "nothing to refit on" in capfd.readouterr().err


def test_a_validation_split_without_labels_chooses_nothing():
    corpus = dataclasses.replace(make_corpus(60), val=split_of(["a boat", "a dog"], [[], []]))
    assert run(corpus).facts["epochs"] == 5


def test_what_is_saved_is_what_was_given_back(tmp_path):
    corpus = make_corpus(60)
    model = run(corpus, tmp_path / "m")
    loaded = PrimeModel.load(tmp_path / "m", device="cpu")
    texts = list(corpus.test.texts)
    assert np.array_equal(loaded.encode(texts), model.encode(texts)) and loaded.predict(texts) == model.predict(texts)
    assert loaded.settings.training.epochs == 5 and not loaded.network.training


@pytest.mark.parametrize("values", [{}, {"prototypes.enabled": False}, {"prototypes.centroid_mode": "ema"}])
def test_the_prototypes_are_exact_at_the_end(values):
    """Whatever was stale in training: label text, mean of the queries as they now are, free vector."""
    corpus = make_corpus(60)
    model = run(corpus, training__validate_every=0, **values)
    encoder, network = model.network.encoder, model.network

    def unit(texts):
        return torch.nn.functional.normalize(encoder(batch_of(encoder, list(texts))), dim=1)

    h = encoder(batch_of(encoder, list(corpus.labels.texts)))
    expected = torch.nn.functional.normalize(h, dim=1)
    if network.label_prototypes is not None:
        queries, true = unit(corpus.train.texts), corpus.train.positives.toarray() > 0
        c = torch.stack([queries[torch.from_numpy(true[:, label])].mean(dim=0) for label in range(10)])
        v = network.free_vectors_FD[network.free_vector_of_L]
        yes = torch.ones(10, dtype=torch.bool)
        expected = torch.nn.functional.normalize(network.label_prototypes(h, c, v, yes, yes), dim=1)
        assert torch.allclose(model.centroids.c_LD, c, atol=1e-5)
    assert torch.allclose(model.prototypes_LD, expected, atol=1e-5)


ODD = {
    "one label": corpus_of(split_of(["a boat", "old boat", "red boat", "the boat"], [[0]] * 4, 1), 1),
    "one query": corpus_of(split_of(["a boat and a dog"], [[0, 8]])),
    "one query and one label": corpus_of(split_of(["a boat"], [[0]], 1), 1),
    "two queries, one of use": corpus_of(split_of(["a boat", ""], [[0], [8]])),
    "two queries": corpus_of(split_of(["a boat", "a dog"], [[0], [8]])),
    "four labels": make_corpus(40, 4),
    "queries without text": corpus_of(split_of(["a boat", "", "a dog", ""] * 10, [[0], [1], [8], []] * 10)),
    "queries without labels": corpus_of(split_of(["a boat", "a horse", "a dog"] * 10, [[0], [], [8]] * 10)),
    "words that nobody knows": corpus_of(split_of(["zzz", "   ", "a dog"] * 10, [[0], [1], [8]] * 10)),
    "one label for all but one": corpus_of(split_of(["a boat"] * 30 + ["a dog"], [[0]] * 30 + [[8]])),
    "all labels for all": corpus_of(split_of(["a boat"] * 30, [list(range(10))] * 30)),
}


@pytest.mark.parametrize("shape", ODD)
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_odd_data_is_trained_around(shape, loss, tmp_path):
    corpus = ODD[shape]
    model = run(corpus, tmp_path / "m", loss__name=loss, training__epochs=3)
    assert np.isfinite(losses_of(tmp_path / "m")).all()
    assert torch.isfinite(model.prototypes_LD).all() and len(model.prototypes_LD) == len(corpus.labels)
    assert len(model.predict(["a boat"], 50)[0]) == len(corpus.labels)
    PrimeModel.load(tmp_path / "m", device="cpu")


def test_a_label_without_queries_has_a_prototype_of_text_and_free_vector_alone():
    rows = [[n % 8] for n in range(40)]
    corpus = corpus_of(split_of([f"a {THINGS[row[0]]}" for row in rows], rows))
    model = run(corpus, training__validate_every=0)
    assert model.centroids.has_L.tolist() == [True] * 8 + [False] * 2
    encoder, network = model.network.encoder, model.network
    h = encoder(batch_of(encoder, THINGS))
    v = network.free_vectors_FD[network.free_vector_of_L]
    z = network.label_prototypes(h, torch.randn_like(h), v, model.centroids.has_L & False, model.centroids.has_L | True)
    assert torch.allclose(model.prototypes_LD[8:], torch.nn.functional.normalize(z, dim=1)[8:], atol=1e-5)
    assert not torch.allclose(model.prototypes_LD[:8], torch.nn.functional.normalize(z, dim=1)[:8], atol=1e-2)


def test_a_label_without_text():
    corpus = make_corpus(60)
    corpus = dataclasses.replace(corpus, labels=Labels(THINGS, THINGS, ["", "   ", *THINGS[2:]]))
    model = run(corpus)
    assert torch.isfinite(model.prototypes_LD).all()
    text_only = run(corpus, prototypes__enabled=False)
    assert torch.isfinite(text_only.prototypes_LD).all() and text_only.prototypes_LD[0].abs().max() == 0


SHAPES_OF_PROTOTYPES = {
    "more free vectors than labels": ({"prototypes.num_free_vectors": 1000}, 10),
    "one free vector": ({"prototypes.num_free_vectors": 1}, 1),
    "no free vector": ({"prototypes.free_vector": False}, 0),
    "no centroid": ({"prototypes.centroid": False}, 4),
    "neither": ({"prototypes.centroid": False, "prototypes.free_vector": False}, 0),
    "text only": ({"prototypes.enabled": False}, 0),
    "heads": ({"prototypes.heads": 4}, 4),
    "always dropped": ({"prototypes.drop_centroid": 1.0, "prototypes.drop_free_vector": 1.0}, 4),
    "length 1": ({"prototypes.normalise_text": True}, 4),
}


@pytest.mark.parametrize("case", SHAPES_OF_PROTOTYPES)
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_every_form_of_prototype(case, loss, tmp_path):
    values, num_free_vectors = SHAPES_OF_PROTOTYPES[case]
    model = run(make_corpus(60), tmp_path / "m", loss__name=loss, sampling__batches="random", **values)
    losses = losses_of(tmp_path / "m")
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    assert len(model.network.free_vectors_FD) == num_free_vectors
    counts = np.bincount(model.network.free_vector_of_L.numpy(), minlength=num_free_vectors)
    assert num_free_vectors == 0 or counts.max() - counts.min() <= 1, "balanced"
    PrimeModel.load(tmp_path / "m", device="cpu")


@pytest.mark.parametrize("batches", ["ngame", "random"])
@pytest.mark.parametrize("positives", ["propensity", "uniform"])
def test_every_form_of_sampling(batches, positives):
    assert run(make_corpus(60), sampling__batches=batches, sampling__positives=positives).facts["epochs"] >= 1


def test_a_loss_that_is_no_number_is_said(tmp_path):
    with pytest.raises(UserError, match=r"epoch 1: the loss is not a number.*training\.learning_rate"):
        run(make_corpus(60), tmp_path / "m", training__learning_rate=1e38, training__warmup_steps=0)
    assert not (tmp_path / "m").exists(), "nothing half-written"


def test_nothing_to_train_on(tmp_path):
    with pytest.raises(UserError, match="none of 2 training queries"):
        run(corpus_of(split_of(["", ""], [[0], [1]])), tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with pytest.raises(UserError, match="no train split"):
        run(Corpus("made up", Labels(THINGS, THINGS, THINGS), test=make_split(0, 5)))


def test_bf16_on_a_cpu_is_near(tmp_path):
    corpus = make_corpus(60)
    for precision in ("fp32", "bf16"):
        run(corpus, tmp_path / precision, training__precision=precision)
    assert losses_of(tmp_path / "bf16") == pytest.approx(losses_of(tmp_path / "fp32"), rel=0.1)
    assert losses_of(tmp_path / "bf16") != losses_of(tmp_path / "fp32")
