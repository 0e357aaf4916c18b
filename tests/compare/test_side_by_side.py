"""Processes side by side: the same rows as one after the other, and no failure that reaches another run."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest
import torch
from compare.cases import QUICK, make_corpus

from primexmc.compare.compare import compare
from primexmc.compare.task import Outcome, Plan
from primexmc.errors import UserError

RECIPE = """
base = "{base}"

[[variants]]
name = "{name}"
"loss.margin_max" = 0.5
"""


@dataclasses.dataclass
class Made:
    """A method that tells where it ran, or goes wrong in one of the ways there are."""

    name: str
    ends: str = "well"
    seeded: bool = True
    modes: tuple[str, ...] = ("theta",)

    def plan(self, task):
        return Plan(settings={})

    def check(self, task):
        pass

    def run(self, task, modes):
        print(f"{self.name} was here")
        if self.ends == "raise":
            raise ZeroDivisionError("out of luck")
        if self.ends == "die":
            os._exit(3)
        where = {"process": os.getpid(), "threads": torch.get_num_threads(), "env": os.environ.get("OMP_NUM_THREADS")}
        return Outcome(scores={mode: {"P@1": 50.0 + task.seed} for mode in modes}, train_s=1.0, more=where)


def test_a_run_that_fails_stops_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    before, said = os.environ.get("OMP_NUM_THREADS"), []
    methods = [Made("raises", "raise"), Made("dies", "die"), Made("one"), Made("two"), Made("three")]
    with pytest.raises(UserError, match="2 runs failed") as failed:
        compare(make_corpus(), methods, out=tmp_path, jobs=2, say=said.append)
    assert "raises, seed 0: ZeroDivisionError: out of luck" in str(failed.value)
    assert "dies, seed 0: its process ended with exit code 3" in str(failed.value)
    rows = json.loads((tmp_path / "field.json").read_text())
    assert sorted(row["method"] for row in rows) == ["one", "three", "two"]
    assert {(row["threads"], row["env"]) for row in rows} == {(3, "3")}, "six cores for two"
    assert os.getpid() not in {row["process"] for row in rows}
    assert os.environ.get("OMP_NUM_THREADS") == before
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert "ZeroDivisionError" in logs and "three was here" in logs
    assert sum(line.startswith("[") for line in said) == 5 and "one (theta)" in "".join(said)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_run_begins_after_its_time(tmp_path, jobs):
    said = []
    rows = compare(make_corpus(), [Made("one"), Made("two")], out=tmp_path, jobs=jobs, minutes=0, say=said.append)
    assert rows == [] and not (tmp_path / "field.json").exists()
    assert any("Time is up: 2" in line for line in said)


def test_the_rows_are_those_of_one_after_the_other(tmp_path):
    """Two recipes on two corpora; what the recipes have in common is made once."""
    recipes = [tmp_path / "first.toml", tmp_path / "second.toml"]
    recipes[0].write_text(RECIPE.format(base="prime", name="wide"))
    recipes[1].write_text(RECIPE.format(base="prime", name="also wide"))
    corpora = [make_corpus(), dataclasses.replace(make_corpus(), name="others", test=make_corpus(filtered=True).test)]
    shared = {"recipe": [str(path) for path in recipes], "preset": "static-ablation", "quiet": True}
    quick = {**QUICK, "training.threads": 1}
    alone = compare(corpora, out=tmp_path / "1", settings=quick, say=lambda _: None, **shared)
    said = []
    both = compare(corpora, out=tmp_path / "2", settings=quick, jobs=2, say=said.append, **shared)
    assert [row["method"] for row in both] == 2 * ["prime", "wide"] + 2 * ["prime", "also wide"]
    for ours, theirs in zip(both, alone, strict=True):
        same = ours.keys() - {"train_s", "peak_gib", "predict_ms"}
        assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    rows = json.loads((tmp_path / "2" / "field.json").read_text())
    assert len(rows) == 6 and sum(line.startswith("[") for line in said) == 6
    keys = json.loads((tmp_path / "2" / "details" / "recipe-second.json").read_text())["keys"]
    assert keys == {name: [row["key"] for row in both[4:] if row["data"] == name] for name in ("paintings", "others")}
    assert not (tmp_path / "2" / ".running").exists()
