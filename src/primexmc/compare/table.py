"""Rows of a comparison for the screen: a line a method and mode, with mean and spread where there are several seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from ..evaluation.table import aligned
from .field import Row
from .task import NO_MODE

COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100", "train_s")


def comparison_table(rows: Iterable[Row]) -> str:
    """In the order of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        name = row["method"] if row["mode"] == NO_MODE else f"{row['method']} ({row['mode']})"
        groups.setdefault(name, []).append(row)
    lines = [[name, *(_cell(group, column) for column in COLUMNS)] for name, group in groups.items()]
    return aligned([["", *COLUMNS], *lines])


def _cell(rows: Sequence[Row], column: str) -> str:
    values = [row[column] for row in rows if column in row]
    if not values:
        return ""
    mean = statistics.fmean(values)
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ±{statistics.stdev(values):.1f}"
