"""report.html beside field.json: all rows of a directory, data set by data set, and each recipe with its chart."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..data.frequency import BUCKETS
from ..evaluation.line_chart import COLOURS, line_chart
from ..evaluation.page import bars, cell, figure, page, section, table
from .charts import STEP, curve, recipe_charts
from .details import DETAILS, details_of, read_details
from .entries import Entry, entries_of
from .experiment import Experiment
from .field import Field, Row
from .verdicts import Claim, find, with_course

REPORT = "report.html"
RESULTS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100")
COSTS = {
    "train_s": "training, s",
    "epochs": "epochs",
    "peak_gib": "peak, GiB",
    "model_mb": "model, MB",
    "predict_ms": "a query, ms",
}
COSTS_MEAN = """<p class="quiet">Training includes choosing on validation and training again where the preset says so.
Peak: of the GPU's memory, on a CPU of the process. A query: one text alone, median.</p>"""
STEP_MEANS = """<p class="quiet">Counted from the settings: texts through the encoder and inner products of a training
step, what is computed twice in place of being kept counted twice.</p>"""
MILLIONS = {"products_a_step", "search_products_a_step"}
MOST_SIDE_BY_SIDE = 6


def write_comparison_report(directory: Path) -> None:
    """From field.json and the details beside it, as they are now."""
    entries = entries_of(Field(directory).rows())
    recipes = [read_details(directory, file.stem) for file in sorted((directory / DETAILS).glob("recipe-*.json"))]
    names = list(dict.fromkeys(entry.data for entry in entries))
    parts = [f"<header><h1>Methods side by side</h1>{_lede(entries, names)}</header>"]
    for number, data in enumerate(names):
        here = [entry for entry in entries if entry.data == data]
        parts.append(section(f"data-{number}", data, _data_set(directory, here, recipes, f"d{number}")))
    (directory / REPORT).write_text(page("Methods side by side", parts), encoding="utf-8")


def drawn(experiment: Experiment) -> dict[str, Any]:
    """What the report needs to know of a recipe."""
    return {
        "title": experiment.title,
        "methods": [method.name for method in experiment.methods],
        "lines": dict(experiment.lines),
        "variants": [method for method in experiment.lines if method not in experiment.chart.get("lines", {})],
        "chart": dict(experiment.chart),
        "claims": [dataclasses.asdict(claim) for claim in experiment.claims],
    }


def _lede(entries: Sequence[Entry], names: Sequence[str]) -> str:
    said = []
    for data in names:
        best = max((entry for entry in entries if entry.data == data), key=lambda entry: entry.mean("P@1") or 0.0)
        said.append(
            f"{data}: {best.name} names the right label first for {best.mean('P@1') or 0.0:.1f} % of test queries"
        )
    return f"<p class='lede'>{escape('. '.join(said))}.</p>" if said else ""


def _data_set(directory: Path, entries: Sequence[Entry], recipes: Sequence[Mapping[str, Any]], ident: str) -> str:
    """The methods, the best first; then the recipes in their own order; one without variants tells its claims alone."""
    parts, seen = [], set[str]()
    for number, recipe in enumerate(recipes):
        order = list(recipe.get("methods", ()))
        inside = sorted((entry for entry in entries if _is_of(entry, recipe)), key=lambda e: order.index(e.method))
        variants = recipe.get("variants", recipe["lines"])
        content = _claims(directory, inside, entries, recipe)
        if any(entry.method in variants for entry in inside):
            seen |= set(variants)
            content += _charts(directory, inside, recipe)
            content += _tables(directory, inside, f"{ident}-{number}", in_recipe=True)
        parts.append(section(f"{ident}-{number}", recipe["title"], content, level=3))
    rest = [entry for entry in entries if entry.method not in seen]
    rest.sort(key=lambda entry: -(entry.mean("P@1") or 0.0))
    return "\n".join([_tables(directory, rest, ident), *parts])


def _is_of(entry: Entry, recipe: Mapping[str, Any]) -> bool:
    """Made by the recipe: methods of the same name may stand in several, with other settings."""
    keys = recipe.get("keys", {}).get(entry.data)
    return entry.method in recipe.get("methods", ()) and (keys is None or any(row["key"] in keys for row in entry.rows))


def _tables(directory: Path, entries: Sequence[Entry], ident: str, *, in_recipe: bool = False) -> str:
    """A recipe has its own chart, and its predictions are there for who asks for them."""
    if not entries:
        return ""
    samples = _samples(directory, entries)
    if in_recipe and samples:
        samples = f"<details><summary>Show them</summary>{samples}</details>"
    return "\n".join(
        [
            _results(entries),
            section(f"{ident}-learning", "Learning", "" if in_recipe else _learning(directory, entries), level=3),
            section(f"{ident}-rare", "Frequent and rare labels", _buckets(entries), level=3),
            section(f"{ident}-costs", "What it costs", _amounts(entries, COSTS, COSTS_MEAN), level=3),
            section(f"{ident}-step", "A training step", _amounts(entries, STEP, STEP_MEANS), level=3),
            section(f"{ident}-samples", "Predictions", samples, level=3),
        ]
    )


def _results(entries: Sequence[Entry]) -> str:
    columns = [name for name in RESULTS if any(entry.mean(name) is not None for entry in entries)]
    best = {name: max(entry.mean(name) or 0.0 for entry in entries) for name in columns}
    rows = {entry.name: [_spread_cell(entry, name, best[name]) for name in columns] for entry in entries}
    return table("Results on the test part", ["Method", *columns], rows)


def _spread_cell(entry: Entry, name: str, best: float) -> str:
    shown, values = cell(entry.mean(name), best), entry.values(name)
    if len(values) < 2:
        return shown
    return shown.replace("</td>", f" <span class='quiet'>±{statistics.stdev(values):.1f}</span></td>")


def _learning(directory: Path, entries: Sequence[Entry]) -> str:
    """Of one seed each."""
    charts = []
    for x, x_name in (("seconds", "seconds of training"), ("epoch", "epoch")):
        lines = {entry.name: curve(details_of(directory, entry), x, "P@1") for entry in entries}
        shown = dict([(name, points) for name, points in lines.items() if points][:COLOURS])
        charts.append(figure(f"P@1 on validation, by {x_name}", line_chart("P@1 on validation", shown, x_name=x_name)))
    return f'<div class="pair">{"".join(charts)}</div>' if any(charts) else ""


def _charts(directory: Path, entries: Sequence[Entry], recipe: Mapping[str, Any]) -> str:
    figures = [figure(*chart) for chart in recipe_charts(entries, recipe, lambda entry: details_of(directory, entry))]
    return f'<div class="pair">{"".join(figures)}</div>' if any(figures) else ""


def _rows_with_course(directory: Path, entries: Sequence[Entry]) -> list[Row]:
    pairs = [pair for entry in entries for pair in zip(entry.rows, details_of(directory, entry), strict=True)]
    return [with_course(row, details) for row, details in pairs]


def _claims(directory: Path, entries: Sequence[Entry], all_: Sequence[Entry], recipe: Mapping[str, Any]) -> str:
    """What the recipe says is to come out, where two seeds can say whether it did."""
    rows, beside = (_rows_with_course(directory, some) for some in (entries, all_))
    found = find([Claim(**values) for values in recipe.get("claims", ())], rows, beside)
    lines = {
        f"{finding.claim.says}: {finding.claim.better} against {finding.claim.than}": [
            f"<td>{escape(cell)}</td>"
            for cell in (finding.claim.measure, f"{finding.difference:+.1f}", f"{finding.noise:.1f}", finding.verdict)
        ]
        for finding in found
    }
    return table("Claims", ["Claim", "measure", "difference", "by chance", "verdict"], lines) if lines else ""


def _buckets(entries: Sequence[Entry]) -> str:
    """The bars of the first is coloured: it is what the others are compared with."""
    figures = ""
    for bucket in BUCKETS:
        values = [(entry.name, value) for entry in entries if (value := entry.mean(f"R@10 {bucket}")) is not None]
        if values:
            figures += f"<div><h4>{bucket.capitalize()}</h4>{bars(values, [entries[0].name])}</div>"
    if not figures:
        return ""
    return f"""<p class="quiet">R@10 of labels in three groups by how often they were trained, each with a third of all
training pairs.</p><div class="trio">{figures}</div>"""


def _amounts(entries: Sequence[Entry], names: Mapping[str, str], meaning: str) -> str:
    """Of those that have any of it."""
    columns = [name for name in names if any(entry.mean(name) for entry in entries)]
    rows = {
        entry.name: [f"<td>{_amount(name, entry.mean(name))}</td>" for name in columns]
        for entry in entries
        if any(entry.mean(name) for name in columns)
    }
    return table("Costs", ["Method", *(names[name] for name in columns)], rows) + meaning if rows else ""


def _amount(name: str, value: float | None) -> str:
    if not value:
        return "–"
    value = value / 1e6 if name in MILLIONS else value
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _samples(directory: Path, entries: Sequence[Entry]) -> str:
    """As in the paper's first table: a query, what it should get, and what each method says."""
    answers: dict[str, dict[str, Any]] = {}
    found = {entry.name: details_of(directory, entry)[0].get("samples", []) for entry in entries}
    for name, samples in [pair for pair in found.items() if pair[1]][:MOST_SIDE_BY_SIDE]:
        for sample in samples:
            answers.setdefault(sample["text"], {})[name] = sample
    items = "".join(_side_by_side(text, methods) for text, methods in answers.items())
    if not items:
        return ""
    return f"""<p class="quiet">Test queries taken at even distances, with the best labels of each method;
<span aria-hidden="true">✓</span> marks those that the data calls right.</p><ul class="sided">{items}</ul>"""


def _side_by_side(text: str, methods: Mapping[str, Any]) -> str:
    first = next(iter(methods.values()))
    right = [label for label, is_right in first["predictions"] if is_right] + first["missed"]
    wanted = f"<p class='quiet'>In the data: {escape('; '.join(sorted(right)))}</p>"
    columns = "".join(
        f"<div><h4>{escape(name)}</h4><ol>{''.join(_named(*pair) for pair in sample['predictions'])}</ol></div>"
        for name, sample in methods.items()
    )
    return f"<li><blockquote>{escape(text)}</blockquote>{wanted}<div class='answers'>{columns}</div></li>"


def _named(label: str, is_right: bool) -> str:
    if not is_right:
        return f"<li><span></span><span>{escape(label)}</span></li>"
    said = "<span class='said'> (right)</span>"
    return f"<li class='right'><span aria-hidden='true'>✓</span><span>{escape(label)}{said}</span></li>"
