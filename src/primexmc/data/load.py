"""Looks at what lies at a path and picks its reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ..config import DataSettings
from ..errors import UserError
from .corpus import Corpus
from .lf import lf_files, read_lf
from .lines import without_suffixes
from .sources import TABLE_SUFFIXES
from .tables import read_dataset, read_table_directory, read_table_file, table_files
from .xmc_text import matrix_files, read_xmc_text

EXPECTED = (
    "expected trn.json, tst.json and lbl.json (the LF layout), train, val, test and labels as "
    ".csv, .tsv, .jsonl or .parquet, or trn_X_Y.txt with its raw texts"
)


def load(source: str | Path | Any, settings: DataSettings, single_file_as: Literal["train", "test"]) -> Corpus:
    """`Corpus.load`."""
    if not isinstance(source, (str, Path)):
        return read_dataset(source, settings, single_file_as)
    path = Path(source)
    if path.is_dir():
        return _load_directory(path, settings)
    if not path.exists():
        raise UserError(f"{path}: no such file or directory.")
    return _load_file(path, settings, single_file_as)


def _load_directory(path: Path, settings: DataSettings) -> Corpus:
    if (path / "primexmc.json").exists():
        raise UserError(f"{path}: this is a model; expected data: {EXPECTED}.")
    if lf_files(path):
        return read_lf(path, settings)
    if matrix_files(path):
        return read_xmc_text(path)
    if table_files(path):
        return read_table_directory(path, settings)
    there = sorted(entry.name for entry in path.iterdir())
    listed = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "") if there else "nothing"
    raise UserError(f"{path}: no data that can be read; {EXPECTED}, but it holds {listed}.")


def _load_file(path: Path, settings: DataSettings, single_file_as: Literal["train", "test"]) -> Corpus:
    stem, kind = without_suffixes(path)
    if stem in ("trn", "val", "tst", "lbl") and kind in (".json", ".jsonl") and len(lf_files(path.parent)) > 1:
        raise UserError(f"{path}: one part of a data set in the LF layout; give its directory, {path.parent}.")
    if kind not in TABLE_SUFFIXES:
        raise UserError(f"{path}: not a kind of file that can be read alone; expected {', '.join(TABLE_SUFFIXES)}.")
    return read_table_file(path, settings, single_file_as)
