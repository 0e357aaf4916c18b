"""field.json: one row for each method, mode and seed, there as soon as it is measured."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..atomic import replace_file
from ..errors import UserError

FIELD = "field.json"
Row = dict[str, Any]


class Field:
    """The rows in a directory. Several comparisons may write to it at the same time."""

    def __init__(self, directory: Path, name: str = FIELD) -> None:
        self.directory, self.path = directory, directory / name
        self.rows()

    def rows(self) -> list[Row]:
        """As they are on disk now."""
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise UserError(f"{self.path}: not readable ({error}); expected a list of results.") from None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UserError(f"{self.path}: expected a list of results, one object a row.")
        return rows

    def find(self, key: str) -> Row | None:
        """The row that was made by the same plan on the same data."""
        return next((row for row in self.rows() if row.get("key") == key), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Puts it in, in place of one with the same key."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with _alone(self.directory):
            rows = [other for other in self.rows() if other.get("key") != row["key"]] + [dict(row)]
            with replace_file(self.path) as file:
                file.write_text(_as_json(rows), encoding="utf-8")


def _as_json(rows: list[Row]) -> str:
    """A line a row: easy to compare, easy to read with the tools that lines have."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
