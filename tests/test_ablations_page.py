"""docs/results.md's section on the paper's claims: what the file says, told and drawn; nothing typed."""

from __future__ import annotations

import importlib.util
import json
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

import primexmc
from primexmc.compare.details import write_details
from primexmc.compare.experiment import load_experiment

ROOT = Path(primexmc.__file__).parents[2]
P1 = {"prime-lite": (40.0, 40.4), "no centroids": (38.0, 38.2), "no free vectors": (39.9, 40.5), "dexa": (42.0, 42.2)}


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        spec = importlib.util.spec_from_file_location("ablations_page", ROOT / "tools" / "ablations_page.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(tmp_path):
    """What a comparison leaves: two seeds of four methods of a recipe, and a row that the recipe does not own."""
    rows = [row(method, seed, p1) for method, seeds in P1.items() for seed, p1 in enumerate(seeds)]
    (tmp_path / "field.json").write_text(json.dumps([*rows, row("prime-lite", 0, 99.0, key="other", epochs=1)]))
    for one in rows:
        course = [{"epoch": epoch, "P@1": one["P@1"] - 10 / epoch} for epoch in (1, 2, 10)]
        write_details(tmp_path, one["key"], {"curve": course, "samples": []})
    write_details(tmp_path, "recipe-components", {"keys": {"things": [one["key"] for one in rows]}})
    return tmp_path


def row(method, seed, p1, key=None, epochs=10):
    command = f"primexmc compare things --recipe field --preset static-ablation --methods '{method}'"
    return {
        "data": "things", "method": method, "mode": "theta", "seed": seed, "P@1": p1, "PSP@5": p1 / 2, "train_s": 3.0,
        "queries_a_step": 1600, "products_a_step": 3_200_000, "commit": "abc", "device": "cuda", "command": command,
        "key": key or f"{method}{seed}", "settings": {"training.seed": seed, "training.epochs": epochs, "k": 1},
    }  # fmt: skip


def test_the_page_is_that_of_the_file(tool):
    assert tool.main(["--check"]) == 0, "run `python tools/ablations_page.py`"


def test_every_claim_is_judged_by_the_rule(tool, made):
    """The spreads are .28, .14, .42, .14 (variances .08, .02, .18, .02): s = .27, and two seeds each make 2 s = .55."""
    text, _ = tool.section(tool.Runs(tool.taken(made)))
    lines = text.splitlines()
    assert "| centroids help | P@1, prime-lite − no centroids | +2.1 (chance 0.5): **holds** |" in lines
    assert "| free vectors help | P@1, prime-lite − no free vectors | +0.0 (chance 0.5): **undecided** |" in lines
    assert any(
        "no centroids − dexa" in line and line.endswith("-4.0 (chance 0.5): **does not hold** |") for line in lines
    )
    assert "| things | 3 | 1 | 2 |" in lines, "with those on the course of training and on rare labels"
    assert "9 trainings on cuda, commit abc." in text and "99.0" not in text


def test_rows_and_commands(tool, made):
    text, _ = tool.section(tool.Runs(tool.taken(made)))
    assert "| prime-lite | 2 | 40.2 ±0.3 |" in text
    assert "    primexmc compare things --recipe components --preset static-ablation --seeds 2\n" in text
    assert "| no centroids | 28.1 | 33.1 | 37.1 |" in text, "the mean course after 1, 2 and 10 epochs"
    assert "--recipe pool --preset static-ablation --seeds 2" in text and "Not run yet" in text


def test_drawings_stand_alone(tool, made):
    text, drawings = tool.section(tool.Runs(tool.taken(made)))
    assert sorted(drawings) == ["components-things-p-1.svg", "components-things-psp-5.svg"][:1], (
        "PSP@5 has no course here"
    )
    for name, drawing in drawings.items():
        assert f"(charts/{name})" in text
        root = xml.etree.ElementTree.fromstring(drawing)
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and "--first" in drawing and "#fdfdfc" in drawing
        assert len(root.findall(".//{http://www.w3.org/2000/svg}polyline")) == len(P1)


def test_what_is_taken_loses_no_setting(tool, made):
    content = json.loads(tool._as_json(tool.taken(made)))
    assert content["settings"] == {"k": 1}
    runs = tool.Runs(content)
    assert [one["settings"] for one in runs.rows[:2]] == [row("prime-lite", seed, 0.0)["settings"] for seed in (0, 1)]


def test_every_recipe_with_claims_is_on_the_page(tool):
    text, _ = tool.section(tool.Runs({}))
    for recipe in tool.RECIPES:
        assert load_experiment(recipe).claims and f"--recipe {recipe} " in text


def test_costs_are_counted(tool):
    rows = [row(method, seed, 40.0) for method in ("prime", "dexml") for seed in (0, 1)]
    runs = tool.Runs({"rows": rows, "recipes": {"field": {"keys": {"things": [one["key"] for one in rows]}}}})
    assert "| dexml | 1,600 | 3,200,000 |" in tool.section(runs)[0]
