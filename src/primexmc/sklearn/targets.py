"""What `y` may be: lists of labels, one label a text, or an indicator matrix; and predictions in the same form.

Shapes: N texts, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from ..errors import UserError

Form = Literal["lists", "single", "indicator", "sparse indicator"]
_SHAPES = 'expected a list of labels a text like [["red", "blue"], ...], one label a text, or an indicator matrix'


@dataclass(frozen=True)
class Targets:
    """`rows[i]` are the places in `classes` of text i's labels."""

    form: Form
    classes: npt.NDArray[Any]
    rows: list[list[int]]

    def in_this_form(self, rows: Sequence[Sequence[int]]) -> Any:
        """Predictions, best first, as `y` was."""
        if self.form == "lists":
            plain = self.classes.tolist()
            return [[plain[place] for place in row] for row in rows]
        if self.form == "single":
            return np.array([self.classes[row[0]] for row in rows], dtype=self.classes.dtype)
        matrix = indicator(rows, len(self.classes))
        return matrix if self.form == "sparse indicator" else matrix.toarray()


def read_targets(y: Any) -> Targets:
    """From any of the forms."""
    if y is None:
        raise UserError(f"y is missing: {_SHAPES}.")
    sparse: Any = y if issparse(y) else None
    if sparse is not None:
        return _of_matrix(csr_matrix(sparse), "sparse indicator")
    if hasattr(y, "to_numpy"):  # pandas and polars
        y = y.to_numpy()
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.dtype != object:
        return _of_matrix(csr_matrix(y.astype(np.float64)), "indicator")
    listed = list(y)
    lists = [_is_list(value) for value in listed]
    if any(lists) and not all(lists):
        raise UserError(f"y[{lists.index(not lists[0])}] is unlike y[0]: {_SHAPES}.")
    single = not any(lists)
    named = [[value] for value in listed] if single else [list(value) for value in listed]
    classes = _classes([label for row in named for label in row])
    place = {label: number for number, label in enumerate(classes.tolist())}
    rows = [[place[_plain(label)] for label in dict.fromkeys(row)] for row in named]
    return Targets("single" if single else "lists", classes, rows)


def places(y: Any, targets: Targets) -> list[list[int]]:
    """Another `y` of the same form by the classes of this one; labels that are not among them get places behind."""
    other = read_targets(y)
    if targets.form in ("indicator", "sparse indicator"):
        if other.form not in ("indicator", "sparse indicator") or len(other.classes) != len(targets.classes):
            raise UserError(f"y has another form than in fit: there it had {len(targets.classes)} columns.")
        return other.rows
    known = {label: number for number, label in enumerate(targets.classes.tolist())}
    of_other = [known.setdefault(label, len(known)) for label in other.classes.tolist()]
    return [[of_other[place] for place in row] for row in other.rows]


def indicator(rows: Sequence[Sequence[int]], num_classes: int) -> csr_matrix:
    """N x L with ones."""
    starts = np.cumsum([0, *map(len, rows)])
    ids = np.array([place for row in rows for place in row], dtype=np.int64)
    matrix = csr_matrix((np.ones(len(ids), dtype=np.int64), ids, starts), shape=(len(rows), num_classes))
    matrix.sort_indices()
    return matrix


def _of_matrix(matrix: csr_matrix, form: Form) -> Targets:
    matrix.eliminate_zeros()
    if not set(np.unique(matrix.data).tolist()) <= {1}:
        raise UserError(f"y is a matrix with other values than 0 and 1; {_SHAPES}.")
    rows = [row.tolist() for row in np.split(matrix.indices, matrix.indptr[1:-1])] if matrix.shape[0] else []
    return Targets(form, np.arange(matrix.shape[1]), rows)


def _classes(labels: list[Any]) -> npt.NDArray[Any]:
    """Each once, in order."""
    if len({isinstance(label, str) for label in labels}) > 1:
        raise UserError(f"y holds labels of different kinds, texts and others; {_SHAPES}.")
    return np.unique(np.array(labels))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
