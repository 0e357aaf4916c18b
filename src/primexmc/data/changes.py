"""Files that tell how a model's labels change."""

from __future__ import annotations

from pathlib import Path

from ..config import DataSettings
from ..errors import UserError
from .corpus import Labels
from .label_table import LABEL_COLUMNS, read_label_table
from .lines import read_lines, without_suffixes
from .sources import TABLE_SUFFIXES, open_table
from .tables import read_known_queries
from .texts import Texts


def read_new_labels(path: Path) -> Labels:
    """A table of labels, or a text file with a label a line."""
    if without_suffixes(path)[1] in TABLE_SUFFIXES:
        return read_label_table(open_table(path, set(LABEL_COLUMNS)))
    names = Texts.of(read_uids(path))
    return Labels(names, names, names)


def read_uids(path: Path) -> list[str]:
    """A uid a line, each once; blank lines are passed over."""
    first: dict[str, int] = {}
    for number, line in read_lines(path):
        uid = line.strip()
        if uid and first.setdefault(uid, number) != number:
            raise UserError(f'{path}, line {number}: "{uid}" was already on line {first[uid]}.')
    if not first:
        raise UserError(f"{path}: nothing in it; expected a label a line.")
    return list(first)


def read_label_queries(path: Path, labels: Labels, settings: DataSettings) -> list[list[str]]:
    """The texts that a table of queries has for each of these labels."""
    split = read_known_queries(path, labels, settings)
    of_label = split.positives.tocsc()
    bounds = zip(of_label.indptr[:-1].tolist(), of_label.indptr[1:].tolist(), strict=True)
    return [[split.texts[row] for row in of_label.indices[start:stop].tolist()] for start, stop in bounds]
