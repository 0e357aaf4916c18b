"""The older layout: label matrices (trn_X_Y.txt, or .npz) beside raw text, one query or label a line.

A text matrix has a header "queries labels" and then, per query, "label:relevance label:relevance". Text lines may begin
with "uid->" if all do. Where a file has several names in use, the first of these that is there is read.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from scipy.sparse import csr_matrix, load_npz

from ..errors import UserError
from .corpus import Corpus, Labels, Split
from .fields import say_textless_labels
from .filters import filter_file, read_filter
from .lines import found, read_lines
from .splits import SplitBuilder
from .texts import TextsBuilder

_PARTS = ("trn", "val", "tst")
_LABEL_TEXTS = ("lbl.raw.txt", "raw/Y.txt", "Y.txt", "raw/Yf.txt", "Yf.txt", "raw_data/label.raw.txt")
_UID = re.compile(r"(\S+)->")
_PEEK = 100


def matrix_files(directory: Path) -> dict[str, Path]:
    """Which of trn, val and tst have a label matrix in the directory."""
    files = {part: found(directory, f"{part}_X_Y.txt", f"{part}_X_Y.npz", f"Y.{part}.npz") for part in _PARTS}
    return {part: path for part, path in files.items() if path is not None}


def read_xmc_text(directory: Path) -> Corpus:
    """A directory with label matrices and raw texts."""
    labels = _read_labels(_text_file(directory, _LABEL_TEXTS, "the label texts"))
    splits = {part: _read_split(directory, part, path, len(labels)) for part, path in matrix_files(directory).items()}
    if not {"trn", "tst"} & splits.keys():
        raise UserError(f"{directory}: a label matrix for val only; expected trn_X_Y or tst_X_Y.")
    return Corpus(directory.resolve().name, labels, splits.get("trn"), splits.get("val"), splits.get("tst"))


def _text_file(directory: Path, names: tuple[str, ...], what: str) -> Path:
    path = found(directory, *names)
    if path is None:
        raise UserError(f"{directory}: {what} are missing; expected one of {', '.join(names)}.")
    return path


def _query_texts(part: str) -> tuple[str, ...]:
    long = {"trn": "train", "val": "val", "tst": "test"}[part]
    names = (f"{part}.raw.txt", f"raw/{part}_X.txt", f"{part}_X.txt", f"{long}_raw_texts.txt")
    return (*names, f"raw_data/{long}.raw.txt", f"X.{part}.txt")


def _read_labels(path: Path) -> Labels:
    uids, names = TextsBuilder(), TextsBuilder()
    lines: dict[str, int] = {}
    for number, uid, text in _read_texts(path):
        if uid is not None and lines.setdefault(uid, number) != number:
            first = lines[uid]
            raise UserError(f'{path}, line {number}: label uid "{uid}" was already on line {first}; uids must differ.')
        uids.add(str(len(uids)) if uid is None else uid)
        names.add(text)
    if not len(names):
        raise UserError(f"{path}: the file is empty; expected one label a line.")
    texts = names.finish()
    labels = Labels(uids.finish(), texts, texts)
    say_textless_labels(labels, str(path))
    return labels


def _read_split(directory: Path, part: str, matrix_path: Path, num_labels: int) -> Split:
    texts_path = _text_file(directory, _query_texts(part), f"the texts to {matrix_path.name}")
    is_text = ".npz" not in matrix_path.name
    builder = SplitBuilder(str(matrix_path), "line" if is_text else "row")
    num_queries = _add_matrix(builder, matrix_path, num_labels, is_text)
    num_texts = 0
    for number, uid, text in _read_texts(texts_path):
        builder.add_query(number + 1 if is_text else number - 1, uid, text)
        num_texts += 1
    if num_texts != num_queries:
        raise UserError(f"{texts_path}: {num_texts} texts, but {matrix_path.name} has {num_queries} queries.")
    filters = filter_file(directory, part)
    filtered = None if filters is None else read_filter(filters, num_queries, num_labels)
    return builder.finish(num_labels, filtered)


def _add_matrix(builder: SplitBuilder, path: Path, num_labels: int, is_text: bool) -> int:
    """Adds all rows; returns how many."""
    if not is_text:
        matrix = _load_npz(path)
        _check_labels(path, matrix.shape[1], num_labels)
        builder.add_matrix(matrix)
        return int(matrix.shape[0])
    lines = read_lines(path)
    num_queries, num_columns = _header(path, next(lines, (1, "")))
    _check_labels(path, num_columns, num_labels)
    num_rows = 0
    for number, line in lines:
        if num_rows == num_queries and not line.strip():  # a file may end with empty lines
            continue
        builder.add_labels(number, *_row(path, number, line))
        num_rows += 1
    if num_rows != num_queries:
        raise UserError(f"{path}: {num_rows} rows, but its first line says {num_queries}.")
    return num_queries


def _header(path: Path, first: tuple[int, str]) -> tuple[int, int]:
    fields = first[1].split()
    if len(fields) != 2 or not all(field.isdecimal() for field in fields):
        raise UserError(f'{path}, line 1: expected "queries labels" like "294805 131073", not {first[1][:40]!r}.')
    return int(fields[0]), int(fields[1])


def _row(path: Path, number: int, line: str) -> tuple[list[int], list[float]]:
    fields = line.replace(":", " ").split()
    try:
        if len(fields) != 2 * line.count(":"):
            raise ValueError
        return list(map(int, fields[::2])), list(map(float, fields[1::2]))
    except ValueError:
        raise UserError(f'{path}, line {number}: expected "label:relevance" pairs like "3:1.0 17:1.0".') from None


def _load_npz(path: Path) -> csr_matrix:
    try:
        return csr_matrix(load_npz(path))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: not a sparse matrix that scipy.sparse.save_npz wrote ({error}).") from None


def _check_labels(path: Path, num_columns: int, num_labels: int) -> None:
    if num_columns != num_labels:
        raise UserError(f"{path}: {num_columns} labels, but there are {num_labels} lines of label text.")


def _read_texts(path: Path) -> Iterator[tuple[int, str | None, str]]:
    """(line, uid or None, text)."""
    lines = read_lines(path)
    peeked = list(itertools.islice(lines, _PEEK))
    with_uids = bool(peeked) and all(_UID.match(line) for _, line in peeked)
    for number, line in itertools.chain(peeked, lines):
        match = _UID.match(line) if with_uids else None
        yield number, match and match[1], line[match.end() if match else 0 :].strip()
