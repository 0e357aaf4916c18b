"""The LF layout of the Extreme Classification Repository: trn, val, tst and lbl as JSON lines, and filter files.

A line is {uid, title, content} and, for queries, target_ind (rows of lbl) and target_rel (their relevance).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import DataSettings
from ..errors import UserError
from .corpus import Corpus, Labels, Split
from .fields import as_text, say_textless_labels, title_and_content
from .filters import filter_file, read_filter
from .lines import found, read_objects
from .splits import SplitBuilder
from .texts import TextsBuilder


def lf_files(directory: Path) -> dict[str, Path]:
    """Which of trn, val, tst and lbl lie in the directory."""
    files = {part: found(directory, f"{part}.json", f"{part}.jsonl") for part in ("trn", "val", "tst", "lbl")}
    return {part: path for part, path in files.items() if path is not None}


def read_lf(directory: Path, settings: DataSettings) -> Corpus:
    """A directory in the LF layout."""
    files = lf_files(directory)
    if "lbl" not in files or not ("trn" in files or "tst" in files):
        missing = "lbl.json" if "lbl" not in files else "trn.json and no tst.json"
        there = ", ".join(path.name for path in files.values())
        raise UserError(f"{directory}: it holds {there} but no {missing} (.gz, .jsonl also do).")
    labels = _read_labels(files["lbl"], settings.fields)
    splits = {
        part: _read_split(files[part], filter_file(directory, part), len(labels), settings.fields)
        for part in ("trn", "val", "tst")
        if part in files
    }
    return Corpus(directory.resolve().name, labels, splits.get("trn"), splits.get("val"), splits.get("tst"))


def _read_labels(path: Path, fields: str) -> Labels:
    uids, names, texts = TextsBuilder(), TextsBuilder(), TextsBuilder()
    lines: dict[str, int] = {}
    for number, row in read_objects(path):
        place = f"{path}, line {number}"
        uid = as_text(row.get("uid"), "uid", place) or str(len(uids))
        if lines.setdefault(uid, number) != number:
            raise UserError(f'{place}: label uid "{uid}" was already on line {lines[uid]}; uids must differ.')
        uids.add(uid)
        names.add(as_text(row.get("title"), "title", place).strip())
        texts.add(title_and_content(row, place, fields))
    if not lines:
        raise UserError(f"{path}: the file is empty; expected one label a line.")
    labels = Labels(uids.finish(), names.finish(), texts.finish())
    say_textless_labels(labels, str(path))
    return labels


def _read_split(path: Path, filter_path: Path | None, num_labels: int, fields: str) -> Split:
    builder = SplitBuilder(str(path))
    num_queries = 0
    for number, row in read_objects(path):
        place = builder.at(number)
        uid = as_text(row.get("uid"), "uid", place) or None
        builder.add_query(number, uid, title_and_content(row, place, fields))
        labels, relevance = _targets(row, place)
        builder.add_labels(number, labels, relevance)
        num_queries += 1
    filtered = None if filter_path is None else read_filter(filter_path, num_queries, num_labels)
    return builder.finish(num_labels, filtered)


def _targets(row: Mapping[str, Any], place: str) -> tuple[list[int], list[float] | None]:
    labels, relevance = row.get("target_ind"), row.get("target_rel")
    if labels is None:
        if "target_ind" not in row:
            raise UserError(f"{place}: no target_ind; expected the list of the query's label rows.")
        labels = []
    if not isinstance(labels, list) or not isinstance(relevance, (list, type(None))):
        raise UserError(f"{place}: target_ind and target_rel are lists of numbers, not these.")
    return labels, relevance
