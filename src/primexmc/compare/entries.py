"""Rows that belong together, the seeds of one method with the same settings, under a name that tells them apart."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .field import Row
from .task import NO_MODE

SEED = "training.seed"


@dataclass(frozen=True)
class Entry:
    """One line of a report."""

    name: str
    rows: Sequence[Row]

    @property
    def data(self) -> str:
        return str(self.rows[0]["data"])

    @property
    def method(self) -> str:
        return str(self.rows[0]["method"])

    @property
    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in self.rows[0].get("settings", {}).items() if key != SEED}

    def values(self, column: str) -> list[float]:
        return [row[column] for row in self.rows if isinstance(row.get(column), (int, float))]

    def mean(self, column: str) -> float | None:
        """Over the seeds; None where no row has it."""
        values = self.values(column)
        return statistics.fmean(values) if values else None


def entries_of(rows: Iterable[Row]) -> list[Entry]:
    """In the order of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        settings = {key: value for key, value in row.get("settings", {}).items() if key != SEED}
        group = json.dumps([row["data"], row["method"], row["mode"], settings], sort_keys=True, default=str)
        groups.setdefault(group, []).append(row)
    entries = [Entry(_name(group[0]), group) for group in groups.values()]
    return [
        _told_apart(entry, [e for e in entries if (e.name, e.data) == (entry.name, entry.data)]) for entry in entries
    ]


def _name(row: Row) -> str:
    return str(row["method"]) if row["mode"] in (NO_MODE, "theta") else f"{row['method']} ({row['mode']})"


def _told_apart(entry: Entry, alike: Sequence[Entry]) -> Entry:
    """With the settings in which it differs from others of its name, the encoder first."""
    if len(alike) == 1:
        return entry
    keys = sorted({key for other in alike for key in other.settings}, key=lambda key: (key != "encoder.name", key))
    differing = [key for key in keys if len({json.dumps(other.settings.get(key)) for other in alike}) > 1]
    if "encoder.name" in differing and len({other.settings.get("encoder.name") for other in alike}) == len(alike):
        differing = ["encoder.name"]
    shown = [f"{key.rpartition('.')[2]} {entry.settings.get(key)}" for key in differing[:2] if key in entry.settings]
    return dataclasses.replace(entry, name=f"{entry.name}, {', '.join(shown)}") if shown else entry
