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
        if arguments.recipe:
            load_experiment(arguments.recipe)


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
