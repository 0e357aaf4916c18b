"""The texts to predict for, in batches: lines, or rows of a table, from a file or from stdin."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..data.cells import SEPARATORS, cell_text, pieces
from ..data.fields import as_text, title_and_content
from ..data.lines import parse_object, read_lines, without_suffixes
from ..data.sources import TABLE_SUFFIXES, open_table
from ..errors import UserError, did_you_mean
from .arriving import arriving_lines

KINDS = ("lines", "jsonl", "csv", "tsv", "parquet")
STDIN = "-"
UID_COLUMNS = ("uid", "id")
# How a table from stdin is opened; its rows come when many have arrived.
STDIN_DEVICE = Path("/dev/stdin")


@dataclass(frozen=True)
class Columns:
    """Where in a table the text is, its uid, and labels that are not to be predicted for it; None: not named.

    Without a named text column it is `usual_text`, "text", or title and content; without one of uids "uid" or "id"."""

    text: str | None = None
    uid: str | None = None
    filter: str | None = None
    usual_text: str = "text"


@dataclass(frozen=True)
class Question:
    """One text. `uid` is what stands in the column `uid_column`, as it stands there; `filtered` are label uids."""

    text: str
    uid: Any = None
    uid_column: str | None = None
    filtered: Sequence[str] = ()


def batches_of_questions(
    source: str, size: int, kind: str | None = None, columns: Columns | None = None
) -> Iterator[list[Question]]:
    """At most `size` at a time. From stdin a batch of lines or JSON objects is what has arrived: no answer waits for
    the next question."""
    kind, columns = kind or kind_of(source), columns or Columns()
    if source != STDIN and Path(source).is_dir():
        raise UserError(f"{source}: a directory; expected a file with a text a line, or a table.")
    if kind == "lines" and (columns.text or columns.uid or columns.filter):
        raise UserError(f"{source}: lines have no columns; say with --input-format what kind of table it is.")
    if source == STDIN and kind in ("lines", "jsonl"):
        read = _Lines() if kind == "lines" else _Objects(columns)
        for lines in arriving_lines(cast(BinaryIO, sys.stdin.buffer)):
            yield from _chunks(read(lines), size)
    elif kind == "lines":
        yield from _chunks((Question(line) for _, line in read_lines(Path(source))), size)
    else:
        yield from _chunks(_rows(source, kind, columns), size)


def kind_of(source: str) -> str:
    """By the ending of the name."""
    kind = without_suffixes(Path(source))[1] if source != STDIN else ""
    if kind not in TABLE_SUFFIXES:
        return "lines"
    return "jsonl" if kind in (".json", ".ndjson") else kind.lstrip(".")


class _Lines:
    def __call__(self, lines: Iterable[str]) -> Iterator[Question]:
        return (Question(line) for line in lines)


class _Objects:
    """JSON objects, one a line; the first says which columns there are."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.number = columns, 0
        self.reader: Callable[[Mapping[str, Any], str], Question] | None = None

    def __call__(self, lines: Iterable[str]) -> Iterator[Question]:
        for line in lines:
            self.number += 1
            if line and not line.isspace():
                row = parse_object(line, Path("stdin"), self.number)
                if self.reader is None:
                    self.reader = _reader(list(row), self.columns, "stdin")
                yield self.reader(row, f"stdin, line {self.number}")


def _rows(source: str, kind: str, columns: Columns) -> Iterator[Question]:
    if source == STDIN and kind == "parquet":
        raise UserError("Parquet cannot be read from stdin; name the file.")
    path = STDIN_DEVICE if source == STDIN else Path(source)
    named = [name for name in (columns.text, columns.uid, columns.filter) if name is not None]
    wanted = {*named, columns.usual_text, "text", "title", "content", *UID_COLUMNS}
    table = open_table(path, wanted, kind=f".{kind}")
    read = _reader(table.columns, columns, table.place)
    return (read(row, table.at(line)) for line, row in table.rows)


def _reader(there: Sequence[str], columns: Columns, place: str) -> Callable[[Mapping[str, Any], str], Question]:
    """How a row of a table with these columns becomes a question."""
    text = _text_column(there, columns, place)
    uid = _named(columns.uid, there, place, "--uid-column") or next((c for c in UID_COLUMNS if c in there), None)
    filter = _named(columns.filter, there, place, "--filter-column")

    def read(row: Mapping[str, Any], at: str) -> Question:
        own_text = row.get(text) if text else None
        found = title_and_content(row, at) if own_text is None else as_text(own_text, "the text", at)
        uid_value = row.get(uid) if uid else None
        as_text(uid_value, "uid", at)  # an error for what is neither text nor number
        return Question(found, uid_value, uid, _label_uids(row.get(filter), at) if filter else ())

    return read


def _text_column(there: Sequence[str], columns: Columns, place: str) -> str | None:
    """None where title and content make the text."""
    if columns.text is not None:
        return _named(columns.text, there, place, "--text-column")
    for name in (columns.usual_text, "text"):
        if name in there:
            return name
    return None if "title" in there else _named("text", there, place, "--text-column")


def _named(wanted: str | None, there: Sequence[str], place: str, option: str) -> str | None:
    if wanted is not None and wanted not in there:
        raise UserError(
            f'{place}: no column "{wanted}"; its columns are {", ".join(there)}.{did_you_mean(wanted, there)} '
            f"Name the right one with {option}."
        )
    return wanted


def _label_uids(cell: Any, at: str) -> list[str]:
    """A list, or a text that is parted by the first separator that it holds."""
    text = cell_text(cell, at)
    return pieces(text, next((mark for mark in SEPARATORS if mark in text), ""))


def _chunks(questions: Iterator[Question], size: int) -> Iterator[list[Question]]:
    while chunk := list(itertools.islice(questions, size)):
        yield chunk
