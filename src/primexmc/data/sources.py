"""Tables of any kind as one stream of (line, {column: value})."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from .lines import read_objects, read_raw_lines, without_suffixes

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".ndjson", ".parquet")
_LONGEST_CELL = 1 << 30
_PEEK = 100
_END = "\x00end of file"
_EXCEL_SAYS = re.compile(r"sep=(.)", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """Rows of a file or data set: `place` names it in errors, `unit` says what its rows are counted in."""

    place: str
    columns: list[str]
    rows: Iterable[tuple[int, Mapping[str, Any]]]
    unit: str = "line"

    def at(self, line: int) -> str:
        return f"{self.place}, {self.unit} {line}"


def open_table(path: Path, wanted: Container[str], kind: str = "") -> Table:
    """A table by `kind`, else by the file's extension; where columns can be read alone, only the wanted ones are."""
    kind = kind or without_suffixes(path)[1]
    if kind in (".csv", ".tsv"):
        return _delimited(path, "\t" if kind == ".tsv" else ",")
    if kind == ".parquet":
        return _parquet(path, wanted)
    return _json_lines(path)


def dataset_table(dataset: Any, place: str) -> Table:
    """A Hugging Face dataset, or anything else with column names that iterates over dict rows."""
    named = {column: names for column in dataset.column_names if (names := _class_names(dataset, column))}
    rows = ((row, _with_names(values, named) if named else values) for row, values in enumerate(dataset))
    return Table(place, list(dataset.column_names), rows, "row")


def _delimited(path: Path, delimiter: str) -> Table:
    rows = _cells(path, delimiter)
    header = next(rows, None)
    if header is None:
        raise UserError(f"{path}: the file is empty; expected a header line with the names of the columns.")
    first = delimiter.join(header[1])
    meant = _delimiter_of(first) if delimiter == "," else delimiter
    if meant != delimiter:
        return _delimited(path, meant)
    if _EXCEL_SAYS.fullmatch(first):
        header = next(rows, header)
    columns = [name.strip() for name in header[1]]
    return Table(str(path), columns, _as_mappings(path, columns, rows))


def _delimiter_of(first: str) -> str:
    """Excel writes semicolons into CSV in half of Europe, others write tabs; some say so in a line above the header."""
    said = _EXCEL_SAYS.fullmatch(first)
    if said is not None:
        return said[1]
    return max(",;\t", key=first.count)


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of each row; a quoted cell may go over several lines."""
    csv.field_size_limit(_LONGEST_CELL)
    lines = (line for _, line in read_raw_lines(path))
    reader = csv.reader(itertools.chain(lines, [_END]), delimiter=delimiter)
    first = 1
    try:
        for cells in reader:
            if cells and cells[-1].endswith(_END):
                if cells != [_END]:
                    raise UserError(f"{path}, line {first}: a quotation mark opens here and is never closed.")
                return
            if cells:
                yield first, cells
            first = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {first}: broken row ({error}).") from None


def _as_mappings(
    path: Path, columns: list[str], rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, cells in rows:
        if len(cells) != len(columns):
            raise UserError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {len(columns)}; "
                f"a cell that holds the separator or a line break must stand in double quotes."
            )
        yield line, dict(zip(columns, cells, strict=True))


def _json_lines(path: Path) -> Table:
    rows = read_objects(path)
    peeked = list(itertools.islice(rows, _PEEK))
    if not peeked:
        raise UserError(f"{path}: the file is empty; expected one JSON object a line.")
    columns = list(dict.fromkeys(itertools.chain.from_iterable(row for _, row in peeked)))
    return Table(str(path), columns, itertools.chain(peeked, rows))


def _parquet(path: Path, wanted: Container[str]) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs pyarrow; `pip install pyarrow`.") from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file, or a broken one ({error}).") from None
    columns = list(file.schema_arrow.names)
    rows = _parquet_rows(file, path, [column for column in columns if column in wanted])
    return Table(str(path), columns, rows, "row")


def _parquet_rows(file: Any, path: Path, columns: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow

    row = 0
    try:
        for batch in file.iter_batches(batch_size=8192, columns=columns):
            for values in batch.to_pylist():
                yield row, values
                row += 1
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}, after row {row}: cannot be read on ({error}).") from None


def _class_names(dataset: Any, column: str) -> list[str] | None:
    """The names behind a column of class numbers, where the data set says them."""
    feature = (getattr(dataset, "features", None) or {}).get(column)
    inner = getattr(feature, "feature", feature)
    names = getattr(inner, "names", None)
    return list(names) if names else None


def _with_names(values: Mapping[str, Any], named: Mapping[str, list[str]]) -> dict[str, Any]:
    changed = dict(values)
    for column, names in named.items():
        numbers = changed.get(column)
        if numbers is not None:
            listed = numbers if isinstance(numbers, Iterable) else [numbers]
            changed[column] = [names[number] for number in listed if number >= 0]  # -1 says that it is not known
    return changed
