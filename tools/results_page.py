"""docs/results.md's tables from field.json: a table a data set, and under it the command that makes each row again.

    python tools/results_page.py            writes the tables into docs/results.md
    python tools/results_page.py --check    says with its exit code whether they are as field.json has them

What stands between `<!-- field: DATA -->` and `<!-- end -->` is written by this script, everything else by hand.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from primexmc.compare.entries import Entry, entries_of

ROOT = Path(__file__).resolve().parents[1]
FIELD, PAGE = ROOT / "benchmarks" / "results" / "field.json", ROOT / "docs" / "results.md"
MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100")
COSTS = {"train_s": "training, s", "model_mb": "model, MB", "predict_ms": "a query, ms"}
PART = re.compile(r"(<!-- field: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, entries: Sequence[Entry]) -> str:
    """The page with its tables as the entries have them."""

    def part(match: re.Match[str]) -> str:
        here = [entry for entry in entries if entry.data == match[2]]
        return match[1] + (data_set(here) if here else "Nothing measured yet.\n") + match[3]

    return PART.sub(part, page)


def data_set(entries: Sequence[Entry]) -> str:
    """The best P@1 first."""
    entries = sorted(entries, key=lambda entry: -(entry.mean("P@1") or 0.0))
    columns = [*MEASURES, *(name for name in COSTS if any(entry.mean(name) is not None for entry in entries))]
    head = ["", "method", "encoder", *(COSTS.get(name, name) for name in columns), "device", "commit"]
    lines = [_line(head), _line(["---"] * len(head))]
    for number, entry in enumerate(entries, start=1):
        row = entry.rows[0]
        cells = [_cell(entry, name) for name in columns]
        facts = [str(row.get("device", "cpu")), str(row["commit"])]
        lines.append(_line([str(number), entry.name, str(row.get("encoder", "-")), *cells, *facts]))
    commands = [f"{number:>2}  {entry.rows[0]['command']}" for number, entry in enumerate(entries, start=1)]
    return "\n".join([*lines, "", "```", *commands, "```", ""])


def _cell(entry: Entry, name: str) -> str:
    values = entry.values(name)
    if not values:
        return "–"
    shown = f"{statistics.fmean(values):.1f}"
    return shown if len(values) == 1 else f"{shown} ±{statistics.stdev(values):.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    page = PAGE.read_text(encoding="utf-8")
    new = filled(page, entries_of(json.loads(FIELD.read_text(encoding="utf-8"))))
    if "--check" in arguments:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
