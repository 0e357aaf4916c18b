"""The page: nothing of the data becomes markup, nothing is fetched, all numbers are there."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from evaluation.sample_report import EVIL, sample_report

from primexmc.evaluation.line_chart import line_chart, nice_ticks
from primexmc.evaluation.report import render_report, write_report

VOID = {"meta", "link", "line", "circle", "polyline", "br", "img"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; complains of tags that do not close."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(html)
        assert self.open == [], "unclosed tags"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def test_texts_of_the_data_stay_texts():
    page = Page(render_report(sample_report()))
    assert "script" not in page.tags and "img" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    shown = " ".join(EVIL.split())
    for place in ("A report", "Name", "value", "method", "label 0", "boat", "river"):
        assert f"{place} {shown}" in page.text, place


def test_nothing_outside_is_asked_for():
    html = render_report(sample_report())
    page = Page(html)
    asked = [value for _, name, value in page.attributes if name in {"src", "href", "srcset", "action", "data"}]
    assert asked == ["data:,"]
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL).group(1)
    assert "url(" not in style and "@import" not in style
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in page.attributes


def test_numbers_bars_curves_and_marks_are_there():
    html = render_report(sample_report())
    page = Page(html)
    for words in ("75.3", "71.4", "right for 75.3 % of 9,183", "tf-idf neighbours, reaches 71.4 %", "14,274 labels"):
        assert words in page.text, words
    widths = [value for _, name, value in page.attributes if name == "style"]
    assert widths[:3] == ["width:82.8%", "width:78.5%", "width:9.9%"]
    assert page.tags.count("svg") == 2 and page.tags.count("polyline") == 4
    assert page.text.count("(right)") == 4, "three of five and one of one are right"
    assert "Not among these: boat" in page.text
    tables = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    assert tables[1].count("class='best'") == 8 and "class='best'" not in tables[2]


def test_what_is_missing_is_left_out():
    empty = {"title": "Nothing", "facts": {}, "results": {}, "log": [], "samples": []}
    page = Page(render_report(empty))
    assert "section" not in page.tags and "svg" not in page.tags and "Nothing" in page.text
    shallow = sample_report()
    for result in shallow["results"].values():
        del result["R@100"], result["buckets"]
    text = Page(render_report(shallow)).text
    assert "R@100" not in text and "Frequent and rare" not in text


def test_a_row_written_again_after_a_resume_counts_once():
    report = sample_report()
    report["log"] = [{"phase": "validation", "epoch": epoch, "P@1": 10.0 * epoch} for epoch in (1, 2, 2, 3)]
    points = re.findall(r'polyline points="([^"]*)"', render_report(report))
    assert [len(line.split()) for line in points] == [3]
    report["log"].append({"phase": "train", "epoch": 1, "loss": float("nan")})
    assert "nan" not in render_report(report)


def test_losses_of_several_runs_are_told_apart():
    both = render_report(sample_report())
    assert ">selection</text>" in both and ">refit</text>" in both and ">loss</text>" not in both
    report = sample_report()
    report["log"] = [row for row in report["log"] if row["run"] == "choose"]
    assert ">loss</text>" in render_report(report) and ">selection</text>" not in render_report(report)


def test_the_page_is_written_as_utf8(tmp_path):
    report = sample_report() | {"title": "Ölgemälde 絵"}
    write_report(tmp_path / "report.html", report)
    assert "Ölgemälde 絵" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 3.1], [0, 1, 2, 3, 4]),
        ([47.2, 76.0], [40, 50, 60, 70, 80]),
        ([0.02, 0.11], [0, 0.05, 0.1, 0.15]),
        ([5.0, 5.0], [4, 6]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(values, expected):
    ticks = nice_ticks(values)
    assert ticks[0] <= min(values) and ticks[-1] >= max(values) and 2 <= len(ticks) <= 7
    assert ticks == pytest.approx(expected)


def test_epochs_have_whole_ticks():
    assert nice_ticks([1, 3], whole=True) == [1, 2, 3]
    assert nice_ticks([1], whole=True) == [1, 2]


def test_names_at_the_edge_keep_apart():
    chart = line_chart("t", {"a": [(1, 5.0)], "b": [(1, 5.0)], "c": [(1, 5.1)]}, x_name="epoch")
    places = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)">[abc]<', chart)]
    gaps = sorted(abs(one - other) for i, one in enumerate(places) for other in places[:i])
    assert len(places) == 3 and gaps[0] >= 16
