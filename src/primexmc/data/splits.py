"""SplitBuilder: the queries of one file, row by row, into a checked Split."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from ..errors import UserError
from .corpus import DataWarning, Split
from .pairs import PairsBuilder
from .texts import TextsBuilder


class SplitBuilder:
    """Collects queries and their labels; `place` is what errors call the file, `unit` its lines or rows."""

    def __init__(self, place: str, unit: str = "line") -> None:
        self._place, self._unit = place, unit
        self._texts, self._uids = TextsBuilder(), TextsBuilder()
        self._pairs = PairsBuilder()
        self._lines = array("q")
        self._num_textless = 0

    def add_query(self, line: int, uid: str | None, text: str) -> None:
        """A query; without uid its row number stands in."""
        self._uids.add(str(len(self._lines)) if uid is None else uid)
        self._texts.add(text)
        self._num_textless += not text or text.isspace()
        self._lines.append(line)

    def add_labels(self, line: int, labels: Sequence[int], relevance: Sequence[float] | None = None) -> None:
        """The labels of the next query that has none yet."""
        if relevance is not None and len(relevance) != len(labels):
            raise UserError(
                f"{self.at(line)}: {len(labels)} labels but {len(relevance)} relevance values; expected as many."
            )
        try:
            self._pairs.add_row(labels, relevance)
        except (TypeError, OverflowError):
            raise UserError(
                f"{self.at(line)}: labels are indices and relevance values are numbers, not these."
            ) from None

    def add_matrix(self, matrix: csr_matrix) -> None:
        """The labels of all queries at once, before or after their texts."""
        self._pairs.add_rows(matrix)

    def at(self, line: int) -> str:
        """File and line, for errors."""
        return f"{self._place}, {self._unit} {line}"

    def finish(self, num_labels: int, filtered: csr_matrix | None = None) -> Split:
        """The split, after the checks that need all of it."""
        if not self._lines:
            raise UserError(f"{self._place}: no queries in it.")
        self._check_pairs(num_labels)
        positives = self._pairs.finish(num_labels)
        num_unlabelled = int((np.diff(positives.indptr) == 0).sum())
        self._say_what_is_missing(num_unlabelled)
        return Split(self._texts.finish(), positives, self._uids.finish(), filtered)

    def _check_pairs(self, num_labels: int) -> None:
        wrong_label = self._pairs.row_out_of_range(num_labels)
        if wrong_label:
            row, label = wrong_label
            raise UserError(
                f"{self.at(self._lines[row])}: label {label} is out of range; "
                f"there are {num_labels} labels, numbered 0 to {num_labels - 1}."
            )
        wrong_value = self._pairs.row_of_bad_relevance()
        if wrong_value:
            row, value = wrong_value
            raise UserError(f"{self.at(self._lines[row])}: relevance {value} is not a number of at least 0.")

    def _say_what_is_missing(self, num_unlabelled: int) -> None:
        total = len(self._lines)
        if self._num_textless == total:
            raise UserError(f"{self._place}: none of its {total} queries has a text.")
        if num_unlabelled == total:
            raise UserError(f"{self._place}: none of its {total} queries has a label.")
        missing = [(self._num_textless, "no text"), (num_unlabelled, "no labels")]
        said = " and ".join(f"{count} with {what}" for count, what in missing if count)
        if said:
            warnings.warn(f"{self._place}: {total} queries, {said}; they are kept.", DataWarning, stacklevel=2)
