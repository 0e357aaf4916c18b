"""report.html: one page that shows how good a model is. Plain data in, text out; no script, no font, no link out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypedDict

from .buckets import BUCKETS
from .line_chart import line_chart
from .page import bars, cell, figure, page, section, table

COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@10", "R@100")
BUCKET_METRIC = "R@10"
RUN_NAMES = {"choose": "selection", "refit": "refit"}
MEANINGS = {
    "P@k": "How many of the first k labels are right.",
    "nDCG@k": "The same, where earlier places count more; 100 is the best possible order.",
    "PSP@k": "P@k where rare labels count more (propensity-scored), against the best possible.",
    "R@k": "How many of a query's labels are among the first k.",
}


class SamplePrediction(TypedDict):
    """One predicted label of a sample."""

    label: str
    score: float
    right: bool


class Sample(TypedDict):
    """A query with what was predicted and the right labels that were not."""

    text: str
    predictions: Sequence[SamplePrediction]
    missed: Sequence[str]


class Report(TypedDict):
    """All that the page shows. `results` is metrics by method, ours first; `log` holds the rows of metrics.jsonl."""

    title: str
    facts: Mapping[str, str]
    results: Mapping[str, Mapping[str, Any]]
    log: Sequence[Mapping[str, Any]]
    samples: Sequence[Sample]


def write_report(path: Path, report: Report) -> None:
    """The page as a file."""
    path.write_text(render_report(report), encoding="utf-8")


def render_report(report: Report) -> str:
    """The page as HTML."""
    parts = [
        _header(report),
        _results(report["results"]),
        _buckets(report["results"]),
        _learning(report["log"]),
        _samples(report["samples"]),
    ]
    return page(report["title"], parts)


def _header(report: Report) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in report["facts"].items()
    )
    return (
        f"<header><h1>{escape(report['title'])}</h1>{_lede(report['results'])}<dl class='facts'>{facts}</dl></header>"
    )


def _lede(results: Mapping[str, Mapping[str, Any]]) -> str:
    if not results:
        return ""
    (ours, scores), *others = results.items()
    text = (
        f"The first label that {ours} names is right for {scores['P@1']:.1f} % of {scores['queries']:,} test queries."
    )
    if others:
        name, best = max(others, key=lambda item: float(item[1]["P@1"]))
        text += f" The best of the simple methods, {name}, reaches {best['P@1']:.1f} %."
    return f"<p class='lede'>{escape(text)}</p>"


def _results(results: Mapping[str, Mapping[str, Any]]) -> str:
    columns = [name for name in COLUMNS if any(name in scores for scores in results.values())]
    if not columns:
        return ""
    best = {name: max(scores.get(name, 0.0) for scores in results.values()) for name in columns}
    rows = {method: [cell(scores.get(name), best[name]) for name in columns] for method, scores in results.items()}
    meanings = "".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in MEANINGS.items())
    shown = table("Results on the test part", ["Method", *columns], rows, list(results)[:1])
    meaning = f"<details><summary>What the columns mean</summary><dl>{meanings}</dl></details>"
    return section("results", "Results on the test part", shown + meaning)


def _buckets(results: Mapping[str, Mapping[str, Any]]) -> str:
    shown = {method: scores["buckets"] for method, scores in results.items() if "buckets" in scores}
    if not shown:
        return ""
    figures = "".join(_bucket(name, {method: buckets[name] for method, buckets in shown.items()}) for name in BUCKETS)
    return f"""<section aria-labelledby="buckets"><h2 id="buckets">Frequent and rare labels</h2>
<p>Labels in three groups by how often they were trained, each with a third of all training pairs. The bars show
{BUCKET_METRIC}: of a query's labels in the group, the share found among the first ten.</p>
<div class="trio">{figures}</div></section>"""


def _bucket(name: str, methods: Mapping[str, Mapping[str, Any]]) -> str:
    values = [(method, float(scores.get(BUCKET_METRIC, 0.0))) for method, scores in methods.items()]
    num_labels = next(iter(methods.values()))["labels"]
    title = f"{name.capitalize()} <span class='quiet'>{num_labels:,} labels</span>"
    return f"<div><h3>{title}</h3>{bars(values, list(methods)[:1])}</div>"


def _learning(log: Sequence[Mapping[str, Any]]) -> str:
    quality = {name: _points(log, "validation", name) for name in ("P@1", "P@5")}
    runs = dict.fromkeys(str(row.get("run", "all")) for row in log)
    loss = {RUN_NAMES.get(run, run) if len(runs) > 1 else "loss": _points(log, "train", "loss", run) for run in runs}
    charts = [
        ("Validation, in percent", line_chart("Validation in percent", quality, x_name="epoch")),
        ("Loss in training", line_chart("Loss in training", loss, x_name="epoch", from_zero=True)),
    ]
    figures = "".join(figure(name, svg) for name, svg in charts)
    return section("learning", "Learning", f'<div class="pair">{figures}</div>' if figures else "")


def _points(
    log: Sequence[Mapping[str, Any]], phase: str, name: str, run: str | None = None
) -> list[tuple[float, float]]:
    """(epoch, value) of finite values, of one run where it is given; an epoch written twice counts as it was last."""
    rows = [row for row in log if row.get("phase") == phase and math.isfinite(row.get(name, math.nan))]
    rows = [row for row in rows if run is None or str(row.get("run", "all")) == run]
    return list({float(row["epoch"]): (float(row["epoch"]), float(row[name])) for row in rows}.values())


def _samples(samples: Sequence[Sample]) -> str:
    if not samples:
        return ""
    items = "".join(_sample(sample) for sample in samples)
    return f"""<section aria-labelledby="samples"><h2 id="samples">Predictions</h2>
<p class="quiet">Test queries with the best labels and their scores; <span aria-hidden="true">✓</span> marks those
that the data calls right.</p>
<ul class="samples">{items}</ul></section>"""


def _sample(sample: Sample) -> str:
    lines = "".join(_prediction(prediction) for prediction in sample["predictions"])
    missed = f"Not among these: {escape('; '.join(sample['missed']))}" if sample["missed"] else ""
    after = f"<p class='missed'>{missed}</p>" if missed else ""
    return f"<li><blockquote>{escape(sample['text'])}</blockquote><ol>{lines}</ol>{after}</li>"


def _prediction(prediction: SamplePrediction) -> str:
    label, score = escape(prediction["label"]), f"<span class='score'>{prediction['score']:.2f}</span>"
    if not prediction["right"]:
        return f"<li><span></span><span>{label}</span>{score}</li>"
    said = "<span class='said'> (right)</span>"
    return f"<li class='right'><span aria-hidden='true'>✓</span><span>{label}{said}</span>{score}</li>"
