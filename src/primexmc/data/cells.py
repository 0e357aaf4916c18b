"""Labels in the cells of a table: which separator, and which label each piece means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import UserError, did_you_mean
from .corpus import Labels
from .sources import Table
from .texts import Texts

SEPARATORS = ("|", ";")
_WEIGHTS = {"|": 4, ";": 1}  # names hold a ";" now and then, a "|" hardly ever
_LISTED = "\x1f"  # a cell that came as a list is kept as one text that starts with this and is joined by it
_UNKNOWN, _AMBIGUOUS = -1, -2
_SAMPLE = 10_000


def cell_text(value: Any, place: str) -> str:
    """A cell as one text, whatever type it came in."""
    if isinstance(value, str):
        return value.strip().lstrip(_LISTED)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return "".join(_LISTED + _label_text(piece, place).replace(_LISTED, " ") for piece in value)
    return _label_text(value, place)


def pieces(cell: str, separator: str) -> list[str]:
    """The labels named in a cell; no separator means that the cell is one label."""
    if cell.startswith(_LISTED):
        found = cell.split(_LISTED)
    else:
        found = cell.split(separator) if separator else [cell]
    return [name for piece in found if (name := piece.strip())]


class LabelIndex:
    """From a uid, or a name that only one label has, to the label's row."""

    def __init__(self, labels: Labels | None = None) -> None:
        self.fixed = labels is not None
        self._rows: dict[str, int] = {}
        if labels is not None:
            self._learn(labels)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, names: list[str], table: Table, line: int) -> list[int]:
        """Their rows; an unknown name becomes a new label, or an error where the labels are given."""
        get = self._rows.get
        rows = [get(name, _UNKNOWN) for name in names]
        if rows and min(rows) < 0:
            rows = [self._row(name, table.at(line)) for name in names]
        return rows

    def knows(self, name: str) -> bool:
        return name in self._rows

    def grown(self) -> Labels:
        """Labels made of the names seen."""
        names = Texts.of(self._rows)
        return Labels(names, names, names)

    def _learn(self, labels: Labels) -> None:
        for row, name in enumerate(labels.names):
            if name:
                self._rows[name] = _AMBIGUOUS if name in self._rows else row
        self._rows.update((uid, row) for row, uid in enumerate(labels.uids))

    def _row(self, name: str, place: str) -> int:
        row = self._rows.get(name, _UNKNOWN)
        if row == _AMBIGUOUS:
            raise UserError(f'{place}: several labels are called "{name}"; write the uid of the one that is meant.')
        if row == _UNKNOWN and self.fixed:
            hint = did_you_mean(name, self._rows) if len(self._rows) < 5000 else ""
            raise UserError(f'{place}: there is no label with the uid or name "{name}".{hint}')
        return row if row >= 0 else self._rows.setdefault(name, len(self._rows))


def find_separator(cells: Texts, index: LabelIndex, hint: str) -> str:
    """One of SEPARATORS, or "" when each cell is one label; `hint` is what the train file has.

    Where labels are known already, the separator whose pieces are known most often; else the one in the most cells.
    """
    present = [mark for mark in SEPARATORS if _holds(cells, mark)]
    if not present:
        return ""
    sample = _cells_with(cells, present)
    if len(index):
        order = [*dict.fromkeys([*([hint] if hint in present else []), *present]), ""]
        return max(order, key=lambda mark: _share_known(sample, mark, index))
    return max(present, key=lambda mark: _WEIGHTS[mark] * sum(mark in cell for cell in sample))


def _holds(cells: Texts, mark: str) -> bool:
    return bool((cells.blob == ord(mark)).any())


def _cells_with(cells: Iterable[str], marks: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    for cell in cells:
        if not cell.startswith(_LISTED) and any(mark in cell for mark in marks):
            chosen.append(cell)
            if len(chosen) == _SAMPLE:
                break
    return chosen


def _share_known(cells: Iterable[str], separator: str, index: LabelIndex) -> float:
    named = [index.knows(name) for cell in cells for name in pieces(cell, separator)]
    return sum(named) / max(len(named), 1)


def _label_text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value:
        return ""
    if isinstance(value, (int, float)):
        return str(int(value)) if float(value).is_integer() else str(value)
    raise UserError(f"{place}: the labels cell holds a {type(value).__name__}; expected label names or uids.")
