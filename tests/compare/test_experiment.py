"""Recipes: those of the package, files of one's own, and one command that runs them, alone or several at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from compare.cases import QUICK, make_corpus

import primexmc
from primexmc.compare.claim import claimed
from primexmc.compare.compare import compare
from primexmc.compare.experiment import load_experiment, recipe_names
from primexmc.compare.recipe import Recipe
from primexmc.config import Settings, all_settings
from primexmc.errors import UserError

MINE = """
title = "Margins"
base = "prime"
methods = ["ngame"]

[settings]
"training.epochs" = 1

[[variants]]
name = "wide"
"loss.margin_max" = 0.5

[[variants]]
name = "dexa with half the batch"
method = "dexa"
line = "DEXA"
times = { "training.batch_size" = 0.5 }

[[grids]]
name = "k {loss.num_negatives} at {loss.softmax_tau}"
"loss.num_negatives" = [5, 10]
"loss.softmax_tau" = [0.0, 0.1]

[chart]
x = "loss.num_negatives"
y = ["P@1"]
"""
NAMES = ["prime", "ngame", "wide", "dexa with half the batch", "k 5 at 0.0", "k 5 at 0.1", "k 10 at 0.0", "k 10 at 0.1"]


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_variants_and_grids(mine):
    experiment = load_experiment(str(mine))
    by_name = {method.name: method for method in experiment.methods}
    assert list(by_name) == NAMES and (experiment.name, experiment.title) == ("mine", "Margins")
    assert by_name["wide"].values == {**by_name["prime"].values, "loss.margin_max": 0.5}
    assert by_name["k 10 at 0.0"].values["loss.num_negatives"] == 10
    assert by_name["dexa with half the batch"].times == {"training.batch_size": 0.5}
    assert experiment.lines["dexa with half the batch"] == "DEXA" and experiment.lines["wide"] == "prime"
    assert [method.name for method in experiment.chosen(["wide"])] == ["wide"]
    with pytest.raises(UserError, match=r'no "wid".*Did you mean "wide"'):
        experiment.chosen(["wid"])


@pytest.mark.parametrize("name", recipe_names())
def test_the_packages_own(name):
    """Readable, with a header, with settings that exist and go together, and no two variants that are the same."""
    text = (Path(primexmc.__file__).parent / "compare" / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}: ")
    experiment = load_experiment(name)
    seen = []
    for method in experiment.methods:
        assert isinstance(method, Recipe) and method.values.keys() <= all_settings().keys()
        Settings().with_values({**experiment.settings, **method.values}, name)
        seen.append(({**experiment.settings, **method.values}, method.times))
    assert all(seen.count(one) == 1 for one in seen) and len(seen) >= 2


def test_the_papers_ablations_are_all_there():
    named = (
        "loss-terms pool positive-sampling free-vectors components margins centroids network queries-per-label field"
    )
    assert set(named.split()) <= set(recipe_names())
    from primexmc.cli.compare import EPILOG

    assert all(name in EPILOG for name in recipe_names())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("title =", "titel ="), '"titel" is nothing.*Did you mean "title"'),
        (('name = "wide"', 'name = "wide, and more"'), "without commas"),
        (('name = "wide"', 'name = "ngame"'), 'two methods are named "ngame"'),
        (("at {loss.softmax_tau}", ""), r"needs \{loss.softmax_tau\}"),
        (('method = "dexa"', 'method = "bm25"'), "not trained by this package"),
        (("loss.margin_max", "loss.margin_maxi"), 'unknown setting.*Did you mean "loss.margin_max"'),
        (('x = "loss', 'z = "loss'), "has x, y, lines, log, not z"),
    ],
)
def test_what_is_wrong_with_a_file(mine, change, sentence):
    mine.write_text(MINE.replace(*change), encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        load_experiment(str(mine))


def test_a_recipe_that_is_none():
    with pytest.raises(UserError, match=r'no recipe "los-terms".*Did you mean "loss-terms"'):
        load_experiment("los-terms")


def test_one_command_runs_it(mine, tmp_path):
    options = {"recipe": str(mine), "preset": "static-cpu", "quiet": True, "say": lambda _: None}
    quick = {key: value for key, value in QUICK.items() if key != "training.epochs"}
    rows = compare(make_corpus(), out=tmp_path / "out", settings=quick, **options)
    assert [row["method"] for row in rows] == NAMES
    assert all(row["settings"]["training.epochs"] == 1 for row in rows), "[settings] hold for all"
    assert rows[3]["settings"]["training.batch_size"] * 2 == rows[0]["settings"]["training.batch_size"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Margins" in page and all(name in page for name in NAMES)
    assert f"--recipe {mine}" in rows[2]["command"] and "--methods wide" in rows[2]["command"]
    again = compare(make_corpus(), ["wide"], out=tmp_path / "out", settings=quick, **options)
    assert again == [rows[2]]


RUN = """
import sys
sys.path[:0] = [{tests!r}]
from compare.cases import QUICK, make_corpus
from primexmc.compare.compare import compare
said = []
compare(make_corpus(), ["prime", "ngame", "dexa", "dpr"], out={out!r}, settings=QUICK, preset="static-cpu", quiet=True,
        say=said.append)
print("\\n".join(said))
"""


def test_processes_side_by_side_share_the_work(tmp_path):
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": str(Path(primexmc.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    code = RUN.format(tests=tests, out=str(tmp_path / "out"))
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    for name in ("prime", "ngame", "dexa", "dpr"):
        assert sum(f"{name}, seed 0:\n" in text for text in said) == 1, f"{name} was trained once"
        assert all(f"\n{name} (theta)" in text for text in said), "both tell all of it"
    rows = json.loads((tmp_path / "out" / "field.json").read_text(encoding="utf-8"))
    assert sorted(row["method"] for row in rows) == ["dexa", "dpr", "ngame", "prime"]
    assert not (tmp_path / "out" / ".running").exists()


def test_a_claim_is_one_process_s(tmp_path):
    place, order = tmp_path / "running" / "job", []
    with claimed(place, wait=False) as first, claimed(place, wait=False) as second:
        assert (first, second) == (True, False)

        def wait():
            with claimed(place, wait=True) as third:
                order.append(third)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        assert order == [], "it waits"
    thread.join(5)
    assert order == [True] and not place.parent.exists()
