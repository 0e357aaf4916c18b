"""docs/results.md's tables from field.json: a table a data set, and under it the command that makes each row again; and
README.md's table of all data sets side by side.

    python tools/results_page.py            writes the tables into docs/results.md and README.md
    python tools/results_page.py --check    says with its exit code whether they are as field.json has them

What stands between `<!-- field: DATA -->`, or `<!-- field -->`, and `<!-- end -->` is written by this script,
everything else by hand.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from primexmc.compare.entries import Entry, entries_of
from primexmc.compare.task import NO_MODE

ROOT = Path(__file__).resolve().parents[1]
FIELD, PAGES = ROOT / "benchmarks" / "results" / "field.json", (ROOT / "docs" / "results.md", ROOT / "README.md")
MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100")
COSTS = {"train_s": "training, s", "model_mb": "model, MB", "predict_ms": "a query, ms"}
SIDE_BY_SIDE, MODES = ("P@1", "P@5", "PSP@5"), (NO_MODE, "theta", "all")
PART = re.compile(r"(<!-- field(?:: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, entries: Sequence[Entry]) -> str:
    """The page with its tables as the entries have them."""

    def part(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[1] + side_by_side(entries) + match[3]
        here = [entry for entry in entries if entry.data == match[2]]
        return match[1] + (data_set(here) if here else "Nothing measured yet.\n") + match[3]

    return PART.sub(part, page)


def data_set(entries: Sequence[Entry]) -> str:
    """The best P@1 first."""
    entries = sorted(entries, key=lambda entry: -(entry.mean("P@1") or 0.0))
    columns = [*MEASURES, *(name for name in COSTS if any(entry.mean(name) is not None for entry in entries))]
    head = ["", "method", "encoder", *(COSTS.get(name, name) for name in columns), "device", "commit"]
    lines = [line(head), line(["---"] * len(head))]
    for number, entry in enumerate(entries, start=1):
        row = entry.rows[0]
        cells = [cell(entry, name) for name in columns]
        facts = [str(row.get("device", "cpu")), str(row["commit"])]
        lines.append(line([str(number), _method(entry), str(row.get("encoder", "-")), *cells, *facts]))
    commands = [f"{number:>2}  {entry.rows[0]['command']}" for number, entry in enumerate(entries, start=1)]
    return "\n".join([*lines, "", "```", *commands, "```", ""])


def side_by_side(entries: Sequence[Entry]) -> str:
    """A row for each method that is measured on two data sets at least, a column a data set; of several measurements of
    a method the newest. The best first, by the mean of their shares of the best P@1."""
    found: dict[tuple[str, str], dict[str, Entry]] = {}
    for entry in entries:
        row = entry.rows[0]
        if row["mode"] in MODES:
            name = entry.method if row["mode"] != "all" else f"{entry.method}, all voices"
            found.setdefault((name, str(row.get("encoder", "-"))), {})[entry.data] = entry
    data_sets = sorted({data for of_method in found.values() for data in of_method})
    best = {data: max(one.mean("P@1") or 0.0 for one in entries if one.data == data) for data in data_sets}
    shown = {key: of_method for key, of_method in found.items() if len(of_method) > 1}

    def share(of_method: Mapping[str, Entry]) -> float:
        return statistics.fmean((entry.mean("P@1") or 0.0) / best[data] for data, entry in of_method.items())

    head = ["method", "encoder", *data_sets]
    lines = [line(head), line(["---"] * len(head))]
    for (name, encoder), of_method in sorted(shown.items(), key=lambda item: -share(item[1])):
        lines.append(line([name, encoder, *(_three(of_method.get(data)) for data in data_sets)]))
    return "\n".join([*lines, ""])


def _three(entry: Entry | None) -> str:
    return "–" if entry is None else " / ".join(f"{entry.mean(name) or 0.0:.1f}" for name in SIDE_BY_SIDE)


def _method(entry: Entry) -> str:
    """Without the encoder, which has a column of its own."""
    return entry.name.replace(f", name {entry.settings.get('encoder.name')}", "")


def cell(entry: Entry, name: str) -> str:
    """The mean, and the spread over seeds where there are several."""
    values = entry.values(name)
    if not values:
        return "–"
    shown = f"{statistics.fmean(values):.1f}"
    return shown if len(values) == 1 else f"{shown} ±{statistics.stdev(values):.1f}"


def line(cells: Sequence[str]) -> str:
    """Of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    entries, changed = entries_of(json.loads(FIELD.read_text(encoding="utf-8"))), False
    for place in PAGES:
        page = place.read_text(encoding="utf-8")
        new = filled(page, entries)
        changed |= new != page
        if "--check" not in arguments:
            place.write_text(new, encoding="utf-8")
    return int(changed and "--check" in arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
