"""A run that was interrupted and resumed is the run that was not, bit for bit."""

from __future__ import annotations

import dataclasses
import json

import pytest
from model.tiny import save_hugging_face
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

from primexmc.data.texts import Texts
from primexmc.errors import UserError
from primexmc.training.saver import Interrupted, Saver
from primexmc.training.train import train


@pytest.fixture
def stop_after(monkeypatch):
    """As if Ctrl-C had come during the n-th step of this process."""
    ask = Saver.save_if_due

    def arrange(steps):
        left = [steps]

        def save_if_due(self, phase, state):
            left[0] -= 1
            self._stop = self._stop or left[0] == 0
            ask(self, phase, state)

        monkeypatch.setattr(Saver, "save_if_due", save_if_due)

    return arrange


def run(corpus, place, values, **how):
    return train(corpus, "static-cpu", values, out=place, quiet=True, **how)


def without_clock(facts):
    return {key: value for key, value in facts.items() if key != "train_s"}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(save_hugging_face(tmp_path_factory.mktemp("bert"), "bert"))


# choose: 48 queries, 3 steps an epoch, 5 epochs = 15; refit: 60 queries, 4 steps an epoch until the best epoch
CASES = {
    "epoch centroids": {"training.refit": True},
    "moving centroids": {"training.refit": True, "prototypes.centroid_mode": "ema"},
    "margin": {"training.refit": True, "loss.name": "margin", "training.validate_every": 2},
    "no validation": {"training.validate_every": 0, "prototypes.drop_centroid": 0.3},
    "no refit": {"prototypes.centroid_mode": "ema", "loss.name": "margin"},
    "text only": {"prototypes.enabled": False},
}


@pytest.mark.parametrize("case", CASES)
def test_as_if_it_had_not_been_interrupted(case, tmp_path, stop_after):
    values, corpus = quick(**CASES[case]), make_corpus(60)
    whole = run(corpus, tmp_path / "whole", values)
    stop_after(0)
    stops = [1, 3, 5]  # within an epoch, at the end of one (with its validation still to come), and further on
    for number, steps in enumerate([*stops, 6, 4]):
        stop_after(steps)
        try:
            model = run(corpus, tmp_path / "parts", values, resume=number > 0)
            break
        except Interrupted:
            assert not (tmp_path / "parts" / "primexmc.json").exists()
    else:
        stop_after(0)
        model = run(corpus, tmp_path / "parts", values, resume=True)
    assert_same_tensors(tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "parts"))
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "parts")
    assert without_clock(model.facts) == without_clock(whole.facts)
    assert not (tmp_path / "parts" / "training").exists()


@pytest.mark.parametrize("mode", ["epoch", "ema"])
def test_with_a_transformer_and_its_dropout(mode, bert, tmp_path, stop_after):
    values = quick(training__refit=True, training__learning_rate=1e-3, training__epochs=3, data__query_tokens=12)
    values |= {"encoder.name": bert, "encoder.dropout": 0.1, "prototypes.centroid_mode": mode}
    corpus = make_corpus(60)
    run(corpus, tmp_path / "whole", values)
    for number, steps in enumerate([4, 6]):
        stop_after(steps)
        with pytest.raises(Interrupted):
            run(corpus, tmp_path / "parts", values, resume=number > 0)
    stop_after(0)
    run(corpus, tmp_path / "parts", values, resume=True)
    assert_same_tensors(tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "parts"))
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "parts")


def test_stopped_in_the_refit(tmp_path, stop_after):
    values, corpus = quick(training__refit=True), make_corpus(60)
    run(corpus, tmp_path / "whole", values)
    for number, steps in enumerate([15 + 2, 1]):
        stop_after(steps)
        with pytest.raises(Interrupted):
            run(corpus, tmp_path / "parts", values, resume=number > 0)
        state = next((tmp_path / "parts" / "training").glob("*/state.json"))
        assert json.loads(state.read_text(encoding="utf-8"))["run"]["phase"] == "refit"
    stop_after(0)
    run(corpus, tmp_path / "parts", values, resume=True)
    assert_same_tensors(tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "parts"))
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "parts")


def test_a_checkpoint_after_every_step_changes_nothing(tmp_path):
    corpus = make_corpus(60)
    run(corpus, tmp_path / "never", quick(training__checkpoint_every_s=1e9))
    run(corpus, tmp_path / "always", quick(training__checkpoint_every_s=0.0))
    assert losses_of(tmp_path / "never") == losses_of(tmp_path / "always")


def test_a_crash_is_resumed_from_the_last_checkpoint(tmp_path, monkeypatch):
    """Not a stop that was asked for: rows of the log written after the checkpoint are written again."""
    values, corpus = quick(training__checkpoint_every_s=1e9), make_corpus(60)
    run(corpus, tmp_path / "whole", values)
    ask = Saver.save_if_due

    def save_then_crash(self, phase, state):
        if state.step == 4:
            self._save(phase, state)
        if state.step == 11:
            raise MemoryError
        ask(self, phase, state)

    monkeypatch.setattr(Saver, "save_if_due", save_then_crash)
    with pytest.raises(MemoryError):
        run(corpus, tmp_path / "parts", values)
    assert max(row["step"] for row in rows_of(tmp_path / "parts")) == 9
    monkeypatch.undo()
    monkeypatch.setattr("primexmc.training.train.load_encoder", _tiny_static)
    run(corpus, tmp_path / "parts", values, resume=True)
    assert_same_tensors(tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "parts"))
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "parts")


def _tiny_static(settings, directory=None):
    from model.tiny import static_encoder

    return static_encoder(dropout=settings.dropout)


def interrupted(corpus, place, values, stop_after):
    stop_after(4)
    with pytest.raises(Interrupted):
        run(corpus, place, values)
    stop_after(0)


def test_what_may_differ_and_what_may_not(tmp_path, stop_after):
    corpus, values = make_corpus(60), quick()
    interrupted(corpus, tmp_path / "m", values, stop_after)
    with pytest.raises(UserError, match=r"--resume.*--overwrite"):
        run(corpus, tmp_path / "m", values)
    with pytest.raises(UserError, match=r"training\.learning_rate=0\.02, not 0\.03"):
        run(corpus, tmp_path / "m", values | {"training.learning_rate": 0.03}, resume=True)
    run(corpus, tmp_path / "m", values | {"training.checkpoint_every_s": 5.0, "training.device": "cpu"}, resume=True)


def changed_text(corpus):
    return dataclasses.replace(corpus.train, texts=["a red dog", *list(corpus.train.texts)[1:]])


@pytest.mark.parametrize(
    "other",
    [
        lambda corpus: dataclasses.replace(corpus, train=make_split(9, 60)),
        lambda corpus: dataclasses.replace(corpus, train=make_split(0, 61)),
        lambda corpus: dataclasses.replace(corpus, train=changed_text(corpus)),
        lambda corpus: dataclasses.replace(corpus, labels=dataclasses.replace(corpus.labels, texts=["x"] * 10)),
        lambda corpus: dataclasses.replace(corpus, val=make_split(3, 9)),
    ],
)
def test_other_data_is_refused(other, tmp_path, stop_after):
    corpus = make_corpus(60)
    interrupted(corpus, tmp_path / "m", quick(), stop_after)
    with pytest.raises(UserError, match="other data"):
        run(other(corpus), tmp_path / "m", quick(), resume=True)
    same = dataclasses.replace(corpus, train=dataclasses.replace(corpus.train, texts=Texts.of(corpus.train.texts)))
    run(same, tmp_path / "m", quick(), resume=True)


def test_resume_without_a_checkpoint_starts_afresh_and_says_so(tmp_path, capfd):
    train(make_corpus(60), "static-cpu", quick(training__epochs=1), out=tmp_path / "m", resume=True)
    assert "no checkpoint to resume" in capfd.readouterr().err


def test_overwrite_starts_afresh(tmp_path, stop_after):
    corpus = make_corpus(60)
    interrupted(corpus, tmp_path / "m", quick(), stop_after)
    run(corpus, tmp_path / "m", quick(training__epochs=2), overwrite=True)
    run(corpus, tmp_path / "fresh", quick(training__epochs=2))
    assert rows_of(tmp_path / "m") == rows_of(tmp_path / "fresh")
    assert_same_tensors(tensors_of(tmp_path / "m"), tensors_of(tmp_path / "fresh"))


def test_seconds_go_on_counting(tmp_path, stop_after):
    corpus = make_corpus(60)
    interrupted(corpus, tmp_path / "m", quick(), stop_after)
    state = next((tmp_path / "m" / "training").glob("*/state.json"))
    description = json.loads(state.read_text(encoding="utf-8"))
    assert description["numbers"]["seconds"] > 0
    description["numbers"]["seconds"] += 1000
    state.write_text(json.dumps(description), encoding="utf-8")
    run(corpus, tmp_path / "m", quick(), resume=True)
    rows = [json.loads(line) for line in (tmp_path / "m" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[0]["seconds"] < 900 and all(row["seconds"] > 1000 for row in rows[2:])


def test_the_state_of_a_single_query_can_be_saved(tmp_path, stop_after):
    corpus = corpus_of(split_of(["a boat"], [[0]], 1), 1)
    stop_after(2)
    with pytest.raises(Interrupted):
        run(corpus, tmp_path / "m", quick())
    stop_after(0)
    run(corpus, tmp_path / "m", quick(), resume=True)
