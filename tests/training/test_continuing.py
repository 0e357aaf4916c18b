"""train(from_model=...): what is taken over, what is dropped, what is refused, and what is not forgotten."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from model.tiny import THINGS
from training.cases import assert_same_tensors, corpus_of, make_corpus, make_split, quick, split_of, tensors_of

from primexmc.data.corpus import Labels
from primexmc.errors import UserError
from primexmc.evaluation.evaluate import evaluate
from primexmc.model.model import PrimeModel
from primexmc.training.train import train


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A model that knows the first eight things, 20 epochs long; the corpora of then and of later."""
    place = tmp_path_factory.mktemp("old") / "m"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("primexmc.training.train.load_encoder", _tiny)
        corpus = make_corpus(200, num_labels=8)
        train(corpus, "static-cpu", quick(training__epochs=20, training__validate_every=0), out=place, quiet=True)
    return place, corpus


def _tiny(settings, directory=None):
    from model.tiny import static_encoder

    return static_encoder(dropout=settings.dropout)


def later_corpus(size=30, seed=5):
    """Queries that show all ten things."""
    return corpus_of(make_split(seed, size), test=make_split(9, 40))


def test_replay_learns_the_new_and_keeps_the_old(old):
    """Old test queries lose at most 5 points of P@1 by it, and the new labels are found."""
    place, corpus = old
    before = evaluate(PrimeModel.load(place, "cpu"), corpus)["P@1"]
    model = train(later_corpus(60), None, {"training.replay": True}, from_model=place, quiet=True)
    assert before > 90 and evaluate(model, corpus)["P@1"] >= before - 5
    assert model.facts["epochs"] == 6, "the share of new queries is a little over a quarter"
    assert evaluate(model, later_corpus())["P@1"] > 80
    queries = later_corpus().test
    shows_new = [row for row in range(len(queries)) if queries.positives[row, 8:].nnz]
    found = [{one.label for one in row} for row in model.predict([queries.texts[row] for row in shows_new], 3)]
    assert len(found) > 10 and sum(bool(labels & {"dog", "ship"}) for labels in found) >= 0.3 * len(found)
    assert model.num_train_queries > 60 and list(model.labels.uids) == THINGS


def test_it_begins_where_the_old_model_ended(old):
    """With no learning at all the encoder, the network and the free vectors of known labels are the old ones."""
    place, _ = old
    before = PrimeModel.load(place, "cpu")
    labels = Labels(["dog", *THINGS[1:8]], ["dog", *THINGS[1:8]], ["dog", *THINGS[1:8]])
    corpus = dataclasses.replace(corpus_of(make_split(5, 30, 8), 8), labels=labels)
    still = {"training.learning_rate": 0, "training.prototype_learning_rate": 0, "training.weight_decay": 0}
    model = train(corpus, None, still, from_model=before, quiet=True)
    ours, theirs = model.network.state_dict(), before.network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours if name != "free_vector_of_L")
    kept = before.network.free_vector_of_L.tolist()
    now = model.network.free_vector_of_L.tolist()
    assert now[1:] == kept[1:], "by uid"
    text_of = dict(zip(THINGS, before.encode(THINGS), strict=True))
    near = sorted(range(8), key=lambda n: -float(text_of["dog"] @ text_of[THINGS[n]]))[:5]
    votes = {}
    for label in near:
        votes[kept[label]] = votes.get(kept[label], 0) + max(0, float(text_of["dog"] @ text_of[THINGS[label]]))
    assert now[0] == max(votes, key=votes.get), "a new label borrows from its neighbours"
    assert list(model.labels.uids) == list(labels.uids), "boat is gone"
    assert model.settings.training.learning_rate == 0 and model.settings.prototypes == before.settings.prototypes


def test_the_old_model_is_left_as_it_was(old, tmp_path):
    place, _ = old
    before, files = PrimeModel.load(place, "cpu"), tensors_of(place)
    train(later_corpus(), None, {"training.epochs": 2}, from_model=before, out=tmp_path / "new", quiet=True)
    before.save(tmp_path / "again")
    assert_same_tensors(files, tensors_of(tmp_path / "again"))


@pytest.mark.parametrize(("size", "own", "epochs"), [(0, 60, 5), (30, 60, 7), (200, 0, 20)])
def test_epochs_are_a_quarter_or_the_share_of_new_queries(old, size, own, epochs):
    """0 of 60, 30 of 90, and all."""
    place, corpus = old
    texts = [f"something new {n}: boat" for n in range(size)] + list(corpus.train.texts[:own])
    split = split_of(texts, [[n % 8] for n in range(len(texts))], 8)
    values = {"training.validate_every": 0, "training.learning_rate": 0, "training.prototype_learning_rate": 0}
    model = train(corpus_of(split, 8), None, values, from_model=place, quiet=True)
    assert model.facts["epochs"] == epochs


def test_settings_are_the_models_unless_named(old):
    place, _ = old
    model = train(later_corpus(), None, {"training.epochs": 3, "training.seed": 4}, from_model=place, quiet=True)
    wanted = PrimeModel.load(place, "cpu").settings.with_values({"training.epochs": 3, "training.seed": 4}, "test")
    assert model.settings == wanted


def test_a_text_in_both_has_the_new_labels(old):
    place, corpus = old
    text = corpus.train.texts[0]
    later = corpus_of(split_of([text, "a painting of dog"], [[9], [8]]))
    values = {"training.replay": True, "training.epochs": 2, "training.validate_every": 0}
    model = train(later, None, values, from_model=place, quiet=True)
    texts = list(model.memory.texts)
    assert texts.count(text) == 1 and len(texts) == 2 + sum(other != text for other in corpus.train.texts)
    assert model.memory.positives[texts.index(text)].indices.tolist() == [9]


@pytest.mark.parametrize("replay", [False, True])
def test_an_interrupted_continuation_goes_on_bit_for_bit(old, tmp_path, monkeypatch, replay):
    place, _ = old
    values = {"training.epochs": 3, "training.replay": replay, "training.checkpoint_every_s": 0}
    train(later_corpus(), None, values, from_model=place, out=tmp_path / "whole", quiet=True)
    with monkeypatch.context() as patch:
        from primexmc.training.state import TrainingState

        steps = iter(range(1000))
        real = TrainingState.numbers

        def numbers(self):
            if next(steps) == 4:
                raise KeyboardInterrupt
            return real(self)

        patch.setattr(TrainingState, "numbers", numbers)
        with pytest.raises(KeyboardInterrupt):
            train(later_corpus(), None, values, from_model=place, out=tmp_path / "cut", quiet=True)
    if not replay:  # else the data are others, too
        with pytest.raises(UserError, match="--from"):
            train(
                later_corpus(), "static-cpu", quick(training__epochs=3), out=tmp_path / "cut", resume=True, quiet=True
            )
    train(later_corpus(), None, values, from_model=place, out=tmp_path / "cut", resume=True, quiet=True)
    assert_same_tensors(tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "cut"))


def test_a_model_may_be_continued_in_its_place(old, tmp_path):
    place, _ = old
    PrimeModel.load(place, "cpu").save(tmp_path / "m")
    train(later_corpus(), None, {"training.epochs": 2}, from_model=tmp_path / "m", out=tmp_path / "m", quiet=True)
    assert len(PrimeModel.load(tmp_path / "m", "cpu").labels) == 10


REFUSED = [
    ({"encoder.name": "somewhere/else"}, "encoder.name is static"),
    ({"prototypes.width": 16}, "prototypes.width is 8"),
    ({"prototypes.free_vector": False}, "prototypes.free_vector is True"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_another_shape_is_refused(old, tmp_path, values, message):
    with pytest.raises(UserError, match=message):
        train(later_corpus(), None, values, from_model=old[0], out=tmp_path / "new", quiet=True)
    assert not (tmp_path / "new").exists()


def test_replay_needs_a_memory(old):
    model = PrimeModel.load(old[0], "cpu")
    model.memory = None
    with pytest.raises(UserError, match="remembers no queries"):
        train(later_corpus(), None, {"training.replay": True}, from_model=model, quiet=True)


def test_labels_that_were_added_are_trained_now(old):
    model = PrimeModel.load(old[0], "cpu")
    model.add_labels(["dog", "ship"])
    trained = train(later_corpus(), None, {"training.epochs": 2}, from_model=model, quiet=True)
    assert trained.trained_L is None
    assert np.allclose(trained.prototypes_LD.norm(dim=1).numpy(), 1, atol=1e-5)
