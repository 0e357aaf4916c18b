"""A recipe's charts: a number against a setting, a column of the rows, or the course of training."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..evaluation.line_chart import COLOURS, line_chart
from .entries import Entry

STEP = {
    "queries_a_step": "queries",
    "labels_a_step": "labels",
    "texts_a_step": "texts encoded",
    "products_a_step": "products, million",
    "search_texts_a_step": "texts for searches",
    "search_products_a_step": "products for searches, million",
}
Points = list[tuple[float, float]]
Details = Sequence[Mapping[str, Any]]  # of each seed's row: with "curve" in it where it was validated


def recipe_charts(
    entries: Sequence[Entry], recipe: Mapping[str, Any], details_of: Callable[[Entry], Details]
) -> list[tuple[str, str]]:
    """Captions and drawings. `x` is "epoch", "seconds", a setting, or a column of the rows; a line for each of `lines`,
    a chart for each of `y`."""
    chart = recipe.get("chart", {})
    if not chart:
        return []
    x, charts = str(chart["x"]), []
    for measure in chart.get("y", ["P@1"]):
        if x in ("epoch", "seconds"):
            lines = {entry.name: curve(details_of(entry), x, measure) for entry in entries}
            caption = f"{measure} on validation"
        else:
            lines, caption = _points(entries, recipe.get("lines", {}), x, measure), f"{measure} on the test part"
        shown = dict([(name, points) for name, points in lines.items() if points][:COLOURS])
        charts.append((caption, line_chart(caption, shown, x_name=_plain(x), log_x=bool(chart.get("log", False)))))
    return [(caption, svg) for caption, svg in charts if svg]


def curve(details: Details, x: str, y: str) -> Points:
    """The mean over the seeds where they have the same places on x, else the first one's."""
    of_seeds = [
        [(float(point[x]), float(point[y])) for point in one.get("curve", ()) if x in point and y in point]
        for one in details
    ]
    of_seeds = [points for points in of_seeds if points]
    if len({tuple(place for place, _ in points) for points in of_seeds}) != 1:
        return of_seeds[0] if of_seeds else []
    return [(at[0][0], statistics.fmean(value for _, value in at)) for at in zip(*of_seeds, strict=True)]


def _points(entries: Sequence[Entry], line_of: Mapping[str, str], x: str, measure: str) -> dict[str, Points]:
    lines: dict[str, Points] = {}
    for entry in entries:
        row = entry.rows[0]
        where, value = row.get(x, row.get("settings", {}).get(x)), entry.mean(measure)
        if isinstance(where, (int, float)) and value is not None:
            lines.setdefault(line_of.get(entry.method, entry.method), []).append((float(where), value))
    return lines


def _plain(x: str) -> str:
    """A setting or column in words."""
    return f"{STEP[x]} a step" if x in STEP else x.rpartition(".")[2].replace("_", " ")
