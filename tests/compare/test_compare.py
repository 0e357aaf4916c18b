"""compare() end to end on a tiny corpus: the rows, what is not made twice, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import shlex

import pytest
from compare.cases import QUICK, THINGS, make_corpus

from primexmc.cli.parser import parse
from primexmc.compare import recipe
from primexmc.compare.compare import compare
from primexmc.compare.registry import find_method
from primexmc.compare.task import Outcome, Plan, Task
from primexmc.config import Settings
from primexmc.errors import UserError
from primexmc.evaluation.baselines import popularity
from primexmc.evaluation.evaluate import evaluate, score
from primexmc.training.train import train

METHODS = ["prime", "ngame", "popularity", "tfidf-neighbours", "zero-shot"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out, said = tmp_path_factory.mktemp("compare") / "deep" / "out", []
    rows = compare(make_corpus(), METHODS, out=out, settings=QUICK, preset="static-cpu", quiet=True, say=said.append)
    return out, rows, "\n".join(said)


def test_a_row_for_each_method_in_order(made):
    out, rows, _ = made
    assert [row["method"] for row in rows] == METHODS
    assert json.loads((out / "field.json").read_text(encoding="utf-8")) == rows
    assert [row["mode"] for row in rows] == ["theta", "theta", "-", "-", "-"]
    assert [row["chosen_on"] for row in rows] == ["validation", "validation", "rule", "rule", "rule"]
    assert [row["encoder"] for row in rows] == ["static", "static", "-", "-", "static"]
    assert [row["text_len"] for row in rows] == [16, 16, "-", "whole", 16]
    for row in rows:
        assert row["data"] == "paintings" and row["seed"] == 0 and row["filtered"] is False and row["commit"]
        assert {"P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100", "train_s", "settings"} <= row.keys()
        assert all(0 <= row[name] <= 100 for name in ("P@1", "P@5", "PSP@1", "PSP@5", "R@100"))
    assert not (out / ".running").exists(), "nothing but the rows is left"


def test_the_numbers_are_those_of_each_method_alone(made, tmp_path):
    _, rows, _ = made
    corpus, by_name = make_corpus(), {row["method"]: row for row in rows}
    settings = {**QUICK, "loss.name": "margin", "training.seed": 0, "loss.tie_gradient": 0.5}
    alone = evaluate(train(corpus, "static-cpu", settings, quiet=True), corpus)
    plain = score(popularity(corpus.train, corpus.test), corpus.test, corpus.train, Settings().data)
    for name in ("P@1", "P@5", "PSP@5", "R@100"):
        assert by_name["prime"][name] == pytest.approx(alone[name], abs=0.001)
        assert by_name["popularity"][name] == pytest.approx(plain[name], abs=0.001)


def test_methods_keep_their_own_settings(made):
    _, rows, _ = made
    prime, ngame = rows[0]["settings"], rows[1]["settings"]
    assert prime["loss.name"] == "margin", "the method wins over the preset, which says softmax"
    assert prime["prototypes.width"] == 256, "the preset holds where the method says nothing"
    assert prime["training.epochs"] == ngame["training.epochs"] == 2
    assert (ngame["prototypes.enabled"], ngame["loss.num_negatives"], ngame["loss.margin_min"]) == (False, 10, 0.3)
    assert (ngame["sampling.positives_per_query"], ngame["loss.reverse_weight"]) == (1, 0.0)


def test_the_table_is_on_the_screen(made):
    _, rows, said = made
    line = next(line for line in said.splitlines() if line.startswith("prime (theta)"))
    assert line.split()[2] == f"{rows[0]['P@1']:.1f}"
    assert any(line.startswith("popularity") for line in said.splitlines())


def test_a_second_call_makes_nothing_again(made, monkeypatch):
    out, rows, _ = made

    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(recipe, "train", refuse)
    said = []
    again = compare(make_corpus(), METHODS, out=out, settings=QUICK, preset="static-cpu", say=said.append)
    assert again == rows and "already" in said[0]
    free = {**QUICK, "training.threads": 1}
    assert compare(make_corpus(), ["prime"], out=out, settings=free, preset="static-cpu", say=said.append) == rows[:1]
    other = {**QUICK, "training.epochs": 3}
    with pytest.raises(AssertionError, match="trained again"):
        compare(make_corpus(), ["prime"], out=out, settings=other, preset="static-cpu", say=said.append)
    data = dataclasses.replace(make_corpus(), test=make_corpus(filtered=True).test)
    with pytest.raises(AssertionError, match="trained again"):
        compare(data, ["prime"], out=out, settings=QUICK, preset="static-cpu", say=said.append)


def test_the_command_of_a_row_is_one_that_can_be_typed(made):
    for row in made[1]:
        program, *words = shlex.split(row["command"])
        arguments = parse(words)
        assert (program, arguments.verb, arguments.methods) == ("primexmc", "compare", row["method"])
        assert arguments.preset == "static-cpu" and "training.epochs=2" in arguments.set


@dataclasses.dataclass
class Made:
    """A method that gives what the test says."""

    name: str
    numbers: tuple[float, ...] = (50.0,)
    broken: bool = False
    seeded: bool = True
    modes: tuple[str, ...] = ("theta",)

    def plan(self, task):
        return Plan(settings={})

    def check(self, task):
        pass

    def run(self, task, modes):
        if self.broken:
            raise UserError("out of luck")
        return Outcome(scores={mode: {"P@1": self.numbers[task.seed]} for mode in modes}, train_s=1.0)


def test_rows_are_there_as_soon_as_they_are_made(tmp_path):
    with pytest.raises(UserError, match="out of luck"):
        compare(make_corpus(), [Made("good"), Made("bad", broken=True)], out=tmp_path, say=lambda _: None)
    assert [row["method"] for row in json.loads((tmp_path / "field.json").read_text())] == ["good"]


def test_seeds_give_mean_and_spread(tmp_path):
    said = []
    methods = [Made("one", (50.0, 54.0, 58.0)), Made("always the same", (7.0,), seeded=False)]
    rows = compare(make_corpus(), methods, out=tmp_path, seeds=3, say=said.append)
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("one", 0),
        ("one", 1),
        ("one", 2),
        ("always the same", 0),
    ]
    assert "54.0 ±4.0" in "\n".join(said)
    assert "training.seed=2" in rows[2]["command"] and "training.seed" not in rows[0]["command"]


def test_a_mode_that_is_missing_is_made_alone(tmp_path):
    first = compare(make_corpus(), [Made("one", modes=("theta", "memory"))], out=tmp_path, say=lambda _: None)
    method = Made("one", (60.0,), modes=("theta", "memory"))
    both = compare(make_corpus(), [method], out=tmp_path, modes=["theta", "memory"], say=lambda _: None)
    assert both[0] == first[0] and (both[1]["mode"], both[1]["P@1"]) == ("memory", 60.0)


@pytest.mark.parametrize(
    ("methods", "options", "sentence"),
    [
        (["prine"], {}, 'no method "prine".*Did you mean "prime"'),
        ([], {}, "at least one method"),
        (["prime"], {"seeds": 0}, "one seed"),
        (["prime"], {"modes": ["thera"]}, 'no mode.*Did you mean "theta"'),
        (["prime"], {"modes": ["W"]}, 'prime: mode "W" needs a classifier'),
        (["prime"], {"settings": {"training.epoch": 3}}, "unknown setting"),
        (["prime"], {"settings": {"training.device": "cuda:77"}}, "not there"),
    ],
)
def test_what_is_refused(tmp_path, methods, options, sentence):
    with pytest.raises(UserError, match=sentence):
        compare(make_corpus(), methods, out=tmp_path / "out", say=lambda _: None, **options)
    assert not (tmp_path / "out").exists()


def test_prime_lite_has_half_the_batch_of_the_others(tmp_path):
    rows = {}
    for name in ("prime", "prime-lite", "prime-softmax"):
        rows[name] = find_method(name).plan(task_of(make_corpus(), QUICK, tmp_path)).settings
    assert rows["prime-lite"]["training.batch_size"] == rows["prime"]["training.batch_size"] // 2 == 16
    assert rows["prime-lite"]["sampling.positives_per_query"] == 1
    assert rows["prime-softmax"]["loss.name"] == "softmax" and rows["prime-softmax"]["loss.regulariser_weight"] == 0
    same = rows["prime"].keys() - {"training.batch_size", "sampling.positives_per_query"}
    assert all(rows["prime"][key] == rows["prime-lite"][key] for key in same)


def task_of(corpus, values, place):
    """What a method is given."""
    return Task(
        corpus=corpus,
        settings=Settings().with_values(values, "test"),
        preset="static-cpu",
        values=values,
        seed=0,
        place=place,
        checkout=None,
        quiet=True,
    )


def test_a_trained_model_that_was_not_yet_measured_is_measured(tmp_path, monkeypatch):
    corpus, place = make_corpus(), None
    monkeypatch.setattr(recipe, "evaluate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        compare(corpus, ["ngame"], out=tmp_path, settings=QUICK, preset="static-cpu", quiet=True, say=lambda _: None)
    (place,) = (tmp_path / ".running").iterdir()
    assert (place / "primexmc.json").exists()
    monkeypatch.undo()
    monkeypatch.setattr(recipe, "train", lambda *_, **__: pytest.fail("trained again"))
    (row,) = compare(corpus, ["ngame"], out=tmp_path, settings=QUICK, preset="static-cpu", say=lambda _: None)
    assert row["P@1"] >= 0 and not place.exists()


def test_all_labels_can_be_found(made):
    assert all(row["R@100"] == 100 for row in made[1] if row["method"] in {"prime", "ngame", "zero-shot"})
    assert len(THINGS) < 100


def test_rows_say_which_encoder_and_not_where_it_lies(tmp_path):
    (tmp_path / "minute").mkdir()
    corpus, values = make_corpus(), {**QUICK, "encoder.name": str(tmp_path / "minute")}
    for name in ("prime", "zero-shot"):
        plan = find_method(name).plan(task_of(corpus, values, tmp_path))
        assert plan.encoder == plan.settings["encoder.name"] == "minute" and str(tmp_path) not in str(plan)


@pytest.mark.parametrize("name", ["popularity", "zero-shot", "pecos-xrlinear-1", "prime"])
def test_how_it_is_judged_is_part_of_every_plan(tmp_path, name):
    method, corpus = find_method(name), make_corpus()
    plans = [
        method.plan(task_of(corpus, {**QUICK, **change}, tmp_path)).settings
        for change in ({}, {"data.propensity_a": 0.6}, {"data.propensity_b": 2.6}, {"search.top": 10})
    ]
    assert all(plans[0] != other for other in plans[1:])


def test_a_classifier_has_its_modes_and_its_seconds(tmp_path):
    settings = {**QUICK, "classifier.enabled": True, "classifier.epochs": 2}
    modes = ["theta", "W", "theta+W", "W+memory", "all"]
    rows = compare(
        make_corpus(), ["prime"], out=tmp_path, modes=modes, settings=settings, preset="static-cpu", quiet=True,
        say=lambda _: None,
    )  # fmt: skip
    assert [row["mode"] for row in rows] == modes
    assert all(0 <= row["classifier_s"] < row["train_s"] and row["settings"]["classifier.epochs"] == 2 for row in rows)
