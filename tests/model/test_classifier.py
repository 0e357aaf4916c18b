"""A model with a classifier: scores by loops, modes, disk, label changes, indexes."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from model.cases_of_labels import NUM_LABELS, made_model
from safetensors.torch import load_file, save_file

from primexmc.cli.about_model import model_facts, model_text
from primexmc.config import SearchSettings, Settings
from primexmc.errors import UserError
from primexmc.fusion.blend import OF_CLASSIFIER, Blend, Weights
from primexmc.model.index import write_index
from primexmc.model.model import PrimeModel

TEXTS = ["a red boat", "an old castle and a tree", "river", "dog"]
BLEND = Blend(
    {
        "W": Weights(classifier=1.0),
        "theta+W": Weights(classifier=0.3),
        "W+memory": Weights(memory=0.4, classifier=1.0),
        "all": Weights(memory=0.2, classifier=0.6),
    },
    "theta+W",
)


def with_classifier(blend=BLEND, **values):
    """W is random, but that of label 3 is its prototype."""
    plain = made_model(**values)
    torch.manual_seed(9)
    w_LD = torch.nn.functional.normalize(torch.randn(NUM_LABELS, 16), dim=1)
    w_LD[3] = plain.prototypes_LD[3]
    return dataclasses.replace(plain, classifier_LD=w_LD, blend=blend)


def cosines(model, share):
    """By loops in float64."""
    z, w = model.prototypes_LD.double().numpy(), model.classifier_LD.double().numpy()
    h = model.encode(TEXTS).astype(np.float64)
    return np.array([[(1 - share) * (q @ z[n]) + share * (q @ w[n]) for n in range(len(z))] for q in h])


@pytest.mark.parametrize(("mode", "share"), [("theta", 0.0), ("W", 1.0), ("theta+W", 0.3), ("auto", 0.3)])
def test_scores_are_weighted_sums_of_cosines(mode, share):
    model = with_classifier()
    model.mode = mode
    ids, scores = model.rank(TEXTS, 6)
    expected = cosines(model, share)
    np.testing.assert_allclose(scores, -np.sort(-expected, 1)[:, :6], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(expected, ids, 1), scores, atol=1e-5)


@pytest.mark.parametrize(("mode", "share", "part"), [("W+memory", 1.0, 0.4), ("all", 0.6, 0.2)])
def test_with_the_memory(mode, share, part):
    model = with_classifier()
    model.mode = mode
    ids, scores = model.rank(TEXTS, 5)
    votes = np.zeros((len(TEXTS), NUM_LABELS))
    h_ND, pairs = model.memory.h_ND.double().numpy(), model.memory.positives.toarray()
    for row, q in enumerate(model.encode(TEXTS).astype(np.float64)):
        power = np.exp(h_ND @ q / 0.05)  # all 80 queries are among its 100 neighbours
        votes[row] = (power / power.sum()) @ pairs
    expected = cosines(model, share) + part * votes
    np.testing.assert_allclose(scores, -np.sort(-expected, 1)[:, :5], atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(expected, ids, 1), scores, atol=1e-4)


@pytest.mark.parametrize("mode", OF_CLASSIFIER)
def test_a_model_without_says_so(mode):
    model = made_model()
    model.mode = mode
    with pytest.raises(UserError, match=r"no classifier \(W\).*classifier\.enabled=true"):
        model.rank(TEXTS, 3)
    with pytest.raises(UserError, match=r"search\.mode=.* needs a classifier"):
        Settings().with_values({"search.mode": mode}, "test")


def test_all_of_a_model_without_is_without():
    """The weights of modes that no validation has chosen name the classifier, too."""
    model = made_model(remembers=False)
    model.mode = "all"
    ids, scores = model.rank(TEXTS, 5)
    alone, cosine = model.search(model.encode(TEXTS), 5)
    assert np.array_equal(ids, alone) and np.array_equal(scores, cosine)


def test_without_validation_it_predicts_by_name():
    model = with_classifier(blend=None)
    assert np.array_equal(model.rank(TEXTS, 5)[0], np.argsort(-cosines(model, 0), 1)[:, :5])
    model.mode = "theta+W"
    assert np.array_equal(model.rank(TEXTS, 5)[0], np.argsort(-cosines(model, 0.5), 1)[:, :5])


def test_on_disk(tmp_path):
    model = with_classifier()
    model.save(tmp_path / "m")
    other = PrimeModel.load(tmp_path / "m", device="cpu")
    assert torch.equal(other.classifier_LD, model.classifier_LD) and other.blend == model.blend
    assert other.fingerprint() == model.fingerprint()
    assert dataclasses.replace(model, classifier_LD=-model.classifier_LD).fingerprint() != model.fingerprint()
    for one, two in zip(model.rank(TEXTS, 5), other.rank(TEXTS, 5), strict=True):
        assert np.array_equal(one, two)
    file = tmp_path / "m" / "classifier.safetensors"
    save_file({"vectors": load_file(file)["vectors"][1:].clone()}, file)
    with pytest.raises(UserError, match=r"classifier\.safetensors: does not fit"):
        PrimeModel.load(tmp_path / "m")
    made_model().save(tmp_path / "m")
    assert not file.exists() and PrimeModel.load(tmp_path / "m").classifier_LD is None


def test_card_and_info(tmp_path):
    with_classifier(**{"classifier.enabled": True}).save(tmp_path / "m")
    assert "it answers in mode theta+W" in (tmp_path / "m" / "README.md").read_text()
    facts = model_facts(tmp_path / "m")
    assert "answers in mode theta+W; classifier (W): against sampled labels, 10 epochs" in model_text(facts)
    made_model().save(tmp_path / "m")
    assert "classifier" not in (tmp_path / "m" / "README.md").read_text()
    assert "answers in mode theta; classifier (W): none" in model_text(model_facts(tmp_path / "m"))


def test_a_model_of_before(tmp_path):
    """Neither the settings nor the weights of older models know of W."""
    made_model().save(tmp_path / "m")
    file = tmp_path / "m" / "primexmc.json"
    told = json.loads(file.read_text())
    del told["settings"]["classifier"]
    told["blend"] = {
        "best": "memory",
        "weights": {"memory": {"memory": 0.2, "lexical": 0.0, "temperature": 0.05}},
    }
    file.write_text(json.dumps(told))
    model = PrimeModel.load(tmp_path / "m")
    assert model.weights == Weights(memory=0.2) and not model.settings.classifier.enabled
    assert model.rank(TEXTS, 2)[0].shape == (4, 2)


def test_labels_come_and_go():
    model = with_classifier()
    w_LD, before = model.classifier_LD.clone(), {mode: _scores(model, mode) for mode in ("theta", "W", "theta+W")}
    model.add_labels(["a red dog", "mountain bridge"], queries=[["a dog"], []])
    assert torch.equal(model.classifier_LD[:NUM_LABELS], w_LD)
    assert torch.equal(model.classifier_LD[NUM_LABELS:], model.prototypes_LD[NUM_LABELS:])
    for mode, scores in before.items():
        after = _scores(model, mode)
        assert np.array_equal(after[:, :NUM_LABELS], scores)
        np.testing.assert_allclose(after[:, NUM_LABELS:], _scores(model, "theta")[:, NUM_LABELS:], atol=1e-6)
    model.update_labels({"a red dog": ["an old dog", "a red dog"]})
    assert torch.equal(model.classifier_LD[NUM_LABELS], model.prototypes_LD[NUM_LABELS])
    model.remove_labels([f"uid {n}" for n in range(5)])
    assert torch.equal(model.classifier_LD[: NUM_LABELS - 5], w_LD[5:])
    assert np.array_equal(_scores(model, "W")[:, : NUM_LABELS - 5], before["W"][:, 5:])


def test_a_renamed_label_keeps_what_was_learned_beside_its_prototype():
    model = with_classifier()
    z_LD, w_LD = model.prototypes_LD.clone(), model.classifier_LD.clone()
    model.rename_labels({"uid 7": "a castle"})
    moved = model.prototypes_LD[7] - z_LD[7]
    assert moved.norm() > 0.01
    torch.testing.assert_close(model.classifier_LD[7], torch.nn.functional.normalize(w_LD[7] + moved, dim=0))
    others = [n for n in range(NUM_LABELS) if n != 7]
    assert torch.equal(model.classifier_LD[others], w_LD[others])


def test_some_labels_alone():
    model = with_classifier()
    allowed = [f"uid {n}" for n in range(0, NUM_LABELS, 3)]
    expected = cosines(model, 0.3)
    for row, found in enumerate(model.predict(TEXTS, 4, allowed=allowed)):
        best = sorted(range(0, NUM_LABELS, 3), key=lambda n: -expected[row, n])[:4]
        assert [answer.id for answer in found] == best


@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_an_index_is_of_the_usual_mode(backend, tmp_path):
    if backend == "faiss":
        pytest.importorskip("faiss")
    model = with_classifier()
    model.save(tmp_path / "m")
    write_index(PrimeModel.load(tmp_path / "m"), tmp_path / "m", SearchSettings(backend=backend))
    indexed = PrimeModel.load(tmp_path / "m", device="cpu")
    assert indexed.index.backend == backend
    for mode, share in (("theta+W", 0.3), ("theta", 0.0), ("W", 1.0)):
        indexed.mode = mode
        assert np.array_equal(indexed.rank(TEXTS, 3)[0], np.argsort(-cosines(model, share), 1)[:, :3])
    indexed.mode = "auto"
    indexed.remove_labels(["uid 0"])
    indexed.add_labels(["a red dog"])
    indexed.save(tmp_path / "n")
    again = PrimeModel.load(tmp_path / "n", device="cpu")
    assert again.index.backend == backend
    assert np.array_equal(again.rank(TEXTS, 3)[0], np.argsort(-cosines(again, 0.3), 1)[:, :3])


def _scores(model, mode):
    """Of every label, in the order of the labels."""
    model.mode = mode
    ids, scores = model.rank(TEXTS, len(model.labels))
    model.mode = "auto"
    return np.take_along_axis(scores, np.argsort(ids, 1), 1)
