"""QueryFilter: labels that are not to be predicted for a query, from a file or from a column of the input.

Shapes: Q queries, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from ..data.corpus import Labels
from ..data.label_finder import LabelFinder
from ..data.lines import read_lines
from ..errors import UserError
from .questions import Question


class QueryFilter:
    """`file` has lines "row label": the row is the text's number, from 1, or its uid where the input has uids; the
    label is a uid or a name. Labels that the model does not know are passed over."""

    def __init__(self, labels: Labels, file: Path | None = None) -> None:
        self.num_labels, self.finder = len(labels), LabelFinder(labels)
        self.of_row: dict[str, list[int]] = {} if file is None else self._read(file)

    def pairs(self, first_row: int, questions: Sequence[Question]) -> csr_matrix:
        """Q x L: what stands in the file, and in each question's own column."""
        rows, ids = list[int](), list[int]()
        for number, question in enumerate(questions):
            row = first_row + number if question.uid_column is None else question.uid
            found = {
                *self.of_row.get(str(row), ()),
                *(id for word in question.filtered for id in self.finder.find(word)),
            }
            rows += [number] * len(found)
            ids += sorted(found)
        shape = (len(questions), self.num_labels)
        return csr_matrix((np.ones(len(ids), np.float32), (rows, ids)), shape=shape)

    def _read(self, file: Path) -> dict[str, list[int]]:
        of_row: dict[str, list[int]] = {}
        for number, line in read_lines(file):
            if not line or line.isspace():
                continue
            row, _, label = line.strip().partition("\t" if "\t" in line else " ")
            if not label.strip():
                raise UserError(f'{file}, line {number}: expected "row label" like "12 L4", not {line[:40]!r}.')
            of_row.setdefault(row, []).extend(self.finder.find(label.strip()))
        return of_row
