"""Tables with a text and a labels column: train, val, test and labels as CSV, TSV, JSONL, Parquet or data sets."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..config import DataSettings
from ..errors import UserError, did_you_mean
from .cells import LabelIndex, cell_text, find_separator, pieces
from .corpus import Corpus, DataWarning, Labels, Split
from .fields import as_text, title_and_content
from .label_table import LABEL_COLUMNS, read_label_table
from .lines import COMPRESSIONS, without_suffixes
from .sources import TABLE_SUFFIXES, Table, dataset_table, open_table
from .splits import SplitBuilder
from .texts import Texts, TextsBuilder

_STEMS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val", "test": "test"}
_STEMS["labels"] = "labels"
_SOURCE = "a data set with column_names"


def table_files(directory: Path) -> dict[str, Path]:
    """Which of train, val, test and labels lie in the directory as a table."""
    files: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        stem, kind = without_suffixes(path)
        part = _STEMS.get(stem)
        if part is None or kind not in TABLE_SUFFIXES or path.suffix.lower() not in (*TABLE_SUFFIXES, *COMPRESSIONS):
            continue
        if part in files:
            raise UserError(f"{directory}: both {files[part].name} and {path.name} could be {part}; keep one of them.")
        files[part] = path
    return files


def read_table_directory(directory: Path, settings: DataSettings) -> Corpus:
    """A directory of tables."""
    files = table_files(directory)
    if "train" not in files and "test" not in files:
        there = ", ".join(path.name for path in files.values())
        raise UserError(f"{directory}: it holds {there} but no train and no test file.")
    tables = {part: open_table(path, _columns(settings)) for part, path in files.items()}
    return _read(tables, directory.resolve().name, settings)


def read_table_file(path: Path, settings: DataSettings, part: Literal["train", "test"]) -> Corpus:
    """One table, as train or test."""
    return _read({part: open_table(path, _columns(settings))}, without_suffixes(path)[0], settings)


def read_known_queries(path: Path, labels: Labels, settings: DataSettings) -> Split:
    """One table of queries of labels that are known: by uid, or by a name that only one of them has."""
    queries = _read_queries(open_table(path, _columns(settings)), settings)
    queries.resolve(LabelIndex(labels), settings.separator, "")
    return queries.builder.finish(len(labels))


def read_dataset(source: Any, settings: DataSettings, part: Literal["train", "test"]) -> Corpus:
    """A Hugging Face Dataset, or a DatasetDict with splits called like the files."""
    if not isinstance(source, Mapping):
        if not hasattr(source, "column_names"):
            raise UserError(f"a {type(source).__name__} is no data: expected a path, {_SOURCE}, or a mapping of such.")
        return _read({part: dataset_table(source, "the data set")}, "dataset", settings)
    tables = {_STEMS[name]: dataset_table(rows, f"split {name}") for name, rows in source.items() if name in _STEMS}
    if "train" not in tables and "test" not in tables:
        raise UserError(f"the data set has the splits {', '.join(map(str, source))}; expected train or test.")
    return _read(tables, "dataset", settings)


def _read(tables: Mapping[str, Table], name: str, settings: DataSettings) -> Corpus:
    """All tables of a corpus; without a table of labels, the names in the cells are the labels."""
    labels = read_label_table(tables["labels"]) if "labels" in tables else None
    index, hint = LabelIndex(labels), ""
    queries: dict[str, _Queries] = {}
    for part in ("train", "val", "test"):
        if part in tables:
            queries[part] = _read_queries(tables[part], settings)
            hint = queries[part].resolve(index, settings.separator, hint)
            if part == "train":
                num_in_train = len(index)
    if "train" in queries and labels is None and len(index) > num_in_train:
        _say_new_labels(queries["train"].table.place, len(index) - num_in_train)
    labels = index.grown() if labels is None else labels
    splits: dict[str, Split] = {part: split.builder.finish(len(labels)) for part, split in queries.items()}
    return Corpus(name, labels, splits.get("train"), splits.get("val"), splits.get("test"))


@dataclass
class _Queries:
    """The texts of one table and its still unread cells of labels."""

    table: Table
    builder: SplitBuilder
    cells: Texts
    lines: array[int]

    def resolve(self, index: LabelIndex, separator: str, hint: str) -> str:
        """Reads the cells; returns the separator used."""
        mark = find_separator(self.cells, index, hint) if separator == "auto" else separator
        for line, cell in zip(self.lines, self.cells, strict=True):
            self.builder.add_labels(line, index.rows(pieces(cell, mark), self.table, line))
        return mark or hint


def _read_queries(table: Table, settings: DataSettings) -> _Queries:
    text_column = _text_column(table, settings.text_column)
    labels_column = _column(table, settings.labels_column, "labels_column")
    builder, cells, lines = SplitBuilder(table.place, table.unit), TextsBuilder(), array("q")
    for line, row in table.rows:
        place = table.at(line)
        own_text = row.get(text_column) if text_column else None
        if own_text is None:
            text = title_and_content(row, place, settings.fields)
        else:
            text = as_text(own_text, "the text", place).strip()
        builder.add_query(line, as_text(row.get("uid"), "uid", place) or None, text)
        cells.add(cell_text(row.get(labels_column), place))
        lines.append(line)
    return _Queries(table, builder, cells.finish(), lines)


def _columns(settings: DataSettings) -> set[str]:
    """All columns that may be asked for."""
    return {settings.text_column, settings.labels_column, *LABEL_COLUMNS}


def _text_column(table: Table, wanted: str) -> str | None:
    """The column of the text, or None where title and content make the text."""
    if wanted == DataSettings().text_column and wanted not in table.columns and "title" in table.columns:
        return None
    return _column(table, wanted, "text_column")


def _column(table: Table, wanted: str, setting: str) -> str:
    if table.columns.count(wanted) > 1:
        raise UserError(f'{table.place}: several columns are called "{wanted}"; rename all but the one that is meant.')
    if wanted in table.columns:
        return wanted
    if "target_ind" in table.columns:
        raise UserError(f"{table.place}: a file in the LF layout; give the directory that also holds its lbl.json.")
    raise UserError(
        f'{table.place}: no column "{wanted}"; its columns are {", ".join(table.columns)}.'
        f"{did_you_mean(wanted, table.columns)} Name the right one with --set data.{setting}=NAME."
    )


def _say_new_labels(place: str, count: int) -> None:
    warnings.warn(
        f"{count} labels of val and test are not in {place}; they become labels without training queries.",
        DataWarning,
        stacklevel=2,
    )
