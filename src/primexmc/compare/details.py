"""What the report shows of a row and is too much for field.json: its learning curve, and answers to sampled queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic import replace_file
from .entries import Entry

DETAILS = "details"


def write_details(directory: Path, key: str, details: Mapping[str, Any]) -> None:
    """A file beside field.json, found by the row's key."""
    place = directory / DETAILS
    place.mkdir(parents=True, exist_ok=True)
    with replace_file(place / f"{key}.json") as file:
        file.write_text(json.dumps(details, ensure_ascii=False) + "\n", encoding="utf-8")


def read_details(directory: Path, key: str) -> dict[str, Any]:
    """Nothing where there is none, or none that can be read: the report then says less."""
    try:
        found = json.loads((directory / DETAILS / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def details_of(directory: Path, entry: Entry) -> list[dict[str, Any]]:
    """One for each of its rows."""
    return [read_details(directory, str(row.get("key"))) for row in entry.rows]
