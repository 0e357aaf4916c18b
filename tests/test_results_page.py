"""docs/results.md: its tables are field.json's, and every command in it can be typed."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

import primexmc
from primexmc.cli.parser import parse
from primexmc.compare.entries import entries_of
from primexmc.compare.experiment import load_experiment

ROOT = Path(primexmc.__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
ROWS = json.loads((ROOT / "benchmarks" / "results" / "field.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "tools" / "results_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_file(tool):
    assert tool.main(["--check"]) == 0, "run `python tools/results_page.py`"


def test_every_row_is_on_the_page():
    for row in ROWS:
        assert row["command"] in PAGE, row["command"]
        assert f"| {row['P@1']:.1f} |" in PAGE
    assert set(re.findall(r"<!-- field: (\S+) -->", PAGE)) == {row["data"] for row in ROWS}


def test_every_command_can_be_typed():
    commands = re.findall(r"primexmc compare [^`\n|]+", PAGE)
    assert len(commands) >= len(ROWS)
    for command in commands:
        arguments = parse(shlex.split(command)[1:])
        assert arguments.verb == "compare"
        for recipe in (arguments.recipe or "").split(","):
            if recipe:
                load_experiment(recipe)


def test_seeds_are_put_together_and_other_settings_apart(tool):
    def row(seed, p1, **settings):
        return {
            "data": "d", "method": "prime", "mode": "theta", "seed": seed, "encoder": "e", "commit": "c", "P@1": p1,
            "train_s": 5.0, "command": f"primexmc compare d --set training.seed={seed}",
            "settings": {"training.seed": seed, "training.epochs": 3, **settings},
        }  # fmt: skip

    rows = [row(0, 50.0), row(1, 54.0), row(0, 70.0, **{"training.epochs": 9})]
    page = tool.filled("<!-- field: d -->\nold\n<!-- end --> <!-- field: other -->\n<!-- end -->", entries_of(rows))
    assert "old" not in page and "Nothing measured yet" in page
    assert "| 2 | prime, epochs 3 | e | 52.0 ±2.8 |" in page and "| 1 | prime, epochs 9 | e | 70.0 |" in page


def test_side_by_side_has_the_newest_of_what_two_data_sets_have(tool):
    def row(data, method, p1, mode="theta", **settings):
        return {"data": data, "method": method, "mode": mode, "seed": 0, "encoder": "e", "commit": "c", "command": "",
                "P@1": p1, "P@5": p1 / 2, "PSP@5": 3.0, "settings": settings}  # fmt: skip

    rows = [row("a", "x", 10.0, epochs=1), row("a", "x", 20.0, epochs=2), row("b", "x", 30.0), row("a", "alone", 99.0)]
    rows += [row("a", "y", 40.0), row("b", "y", 60.0), row("b", "x", 61.0, mode="all"), row("a", "x", 41.0, mode="all")]
    rows += [row("a", "x", 70.0, mode="memory"), row("b", "x", 70.0, mode="memory")]
    _, _, *lines = tool.side_by_side(entries_of(rows)).splitlines()
    assert lines == [
        "| x, all voices | e | 41.0 / 20.5 / 3.0 | 61.0 / 30.5 / 3.0 |",
        "| y | e | 40.0 / 20.0 / 3.0 | 60.0 / 30.0 / 3.0 |",
        "| x | e | 20.0 / 10.0 / 3.0 | 30.0 / 15.0 / 3.0 |",
    ]
