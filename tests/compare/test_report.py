"""report.html of comparisons: all rows, apart where they differ, safe whatever names say, in headless Chromium."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from browser.test_report_page import CHROMIUM, browse, width_on_a_phone
from compare.cases import QUICK, make_corpus

from primexmc.compare.compare import compare
from primexmc.compare.details import read_details, write_details
from primexmc.compare.entries import entries_of
from primexmc.compare.report import write_comparison_report

EVIL = "<script>alert('x')</script> & \"quoted\""


def row(method="prime", seed=0, p1=50.0, data="things", **more):
    settings = {"training.seed": seed, "training.epochs": 3, "encoder.name": "static", **more.pop("settings", {})}
    return {
        "data": data, "encoder": "static", "method": method, "mode": "theta", "seed": seed, "P@1": p1, "P@5": p1 / 2,
        "R@10 head": 80.0, "R@10 torso": 60.0, "R@10 tail": 40.0, "train_s": 12.0, "peak_gib": 1.5, "model_mb": 40.0,
        "predict_ms": 0.8, "queries_a_step": 100, "labels_a_step": 200, "texts_a_step": 300, "products_a_step": 20_000,
        "key": f"{data}-{method}-{seed}-{len(settings)}-{settings['training.epochs']}", "settings": settings, **more,
    }  # fmt: skip


CURVE = [{"epoch": epoch, "seconds": 3.0 * epoch, "P@1": 10.0 * epoch, "PSP@5": 5.0} for epoch in (1, 2, 3)]
SAMPLE = {"text": EVIL, "predictions": [["boat", True], [EVIL, False]], "missed": ["river"]}


@pytest.fixture
def page(tmp_path):
    rows = [row(seed=0), row(seed=1, p1=54.0), row(EVIL, p1=70.0), row("wide", p1=60.0), row(data="other", p1=5.0)]
    (tmp_path / "field.json").write_text(json.dumps(rows), encoding="utf-8")
    for one in rows:
        write_details(tmp_path, one["key"], {"curve": CURVE, "samples": [SAMPLE]})
    chart = {"x": "labels_a_step", "y": ["P@1"], "log": True}
    recipe = {"title": "Margins", "methods": ["prime", "wide"], "lines": {"wide": "prime"}, "chart": chart}
    write_details(tmp_path, "recipe-margins", recipe)
    write_comparison_report(tmp_path)
    return tmp_path / "report.html"


class Structure(HTMLParser):
    """Every tag that is opened is closed; which ids and scripts there are."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in {"meta", "link", "circle", "line", "polyline", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_all_of_it_is_there(page):
    text = page.read_text(encoding="utf-8")
    structure = Structure(text)
    assert structure.open == [] and "script" not in structure.tags and len(structure.ids) == len(set(structure.ids))
    for words in ("things", "other", "Margins", "Learning", "Frequent and rare labels", "What it costs", "Predictions"):
        assert words in text, words
    assert "52.0 <span class='quiet'>±2.8</span>" in text, "seeds are one line"
    assert EVIL not in text and "&lt;script&gt;" in text
    assert "(right)</span>" in text and "In the data: boat; river" in text


def test_the_best_is_first_and_a_variant_only_in_its_recipe(page):
    things, margins = page.read_text(encoding="utf-8").split("Margins</h3>")[0:2]
    first = re.findall(r"<th scope='row'>(.*?)</th>", things)[:2]
    assert first[0].startswith("&lt;script") and first[1] == "prime"
    assert "<th scope='row'>wide</th>" not in things and "<th scope='row'>wide</th>" in margins


def test_rows_with_other_settings_have_other_names():
    rows = [row(seed=0), row(seed=1), row(settings={"training.epochs": 9}), row("ngame")]
    assert [(entry.name, len(entry.rows)) for entry in entries_of(rows)] == [
        ("prime, epochs 3", 2),
        ("prime, epochs 9", 1),
        ("ngame", 1),
    ]
    other = {"encoder.name": "minilm", "training.epochs": 9}
    assert [entry.name for entry in entries_of([row(), row(settings=other)])] == [
        "prime, name static",
        "prime, name minilm",
    ]


def test_without_details_it_says_less(tmp_path):
    (tmp_path / "field.json").write_text(json.dumps([row()]), encoding="utf-8")
    write_comparison_report(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "prime" in text and "Learning" not in text and "Predictions" not in text
    assert read_details(tmp_path, "nothing") == {}


def test_a_comparison_writes_what_the_page_needs(tmp_path):
    methods = ["prime", "popularity"]
    rows = compare(
        make_corpus(), methods, out=tmp_path, settings=QUICK, preset="static-cpu", quiet=True, say=lambda _: None
    )
    prime, popularity = rows
    assert prime["peak_gib"] > 0.05 and prime["model_mb"] > 5 and prime["predict_ms"] > 0
    assert {"R@10 head", "R@10 torso", "R@10 tail"} <= popularity.keys() and "peak_gib" not in popularity
    details = read_details(tmp_path, prime["key"])
    assert [point["epoch"] for point in details["curve"]] == [2] and len(details["samples"]) == 8
    corpus = make_corpus()
    for mine, other in zip(details["samples"], read_details(tmp_path, popularity["key"])["samples"], strict=True):
        assert mine["text"] == other["text"], "the same queries for all"
        at = corpus.test.texts.index(mine["text"])
        true = {corpus.labels.names[label] for label in corpus.test.positives[[at]].indices}
        for sample in (mine, other):
            assert {name for name, right in sample["predictions"] if right} | set(sample["missed"]) == true
    assert mine["predictions"][0][0] in mine["text"], "the model names what the text shows"
    assert "prime" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")
def test_in_a_browser(page):
    _, complaints = browse(page, "--dump-dom")
    assert complaints == []
    assert width_on_a_phone(page) == [390, 390]


def test_claims_are_judged_in_the_report(tmp_path):
    """Two seeds each of two methods 10 points apart, spread 2: chance makes 2 x 2 x sqrt(1/2 + 1/2) = 4."""
    step = 2.0**0.5
    rows = [
        row(name, seed, p1 + step * (2 * seed - 1)) for name, p1 in (("prime", 60.0), ("wide", 50.0)) for seed in (0, 1)
    ]
    (tmp_path / "field.json").write_text(json.dumps(rows), encoding="utf-8")
    claims = [{"says": "narrow is better", "better": "prime", "than": "wide", "measure": "P@1"}]
    recipe = {"title": "Margins", "methods": ["prime", "wide"], "lines": {"wide": "prime"}, "chart": {}}
    keys = {"things": [one["key"] for one in rows]}
    write_details(tmp_path, "recipe-margins", {**recipe, "claims": claims, "keys": keys})
    write_comparison_report(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    wanted = "narrow is better: prime against wide</th><td>P@1</td><td>+10.0</td><td>4.0</td><td>holds</td>"
    assert wanted in text
    write_details(tmp_path, "recipe-margins", {**recipe, "claims": claims, "keys": {"things": []}})
    write_comparison_report(tmp_path)
    assert "narrow is better" not in (tmp_path / "report.html").read_text(encoding="utf-8")
