"""Filter files: pairs of a query and a label that are neither rewarded nor punished."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from ..errors import UserError
from .lines import found, read_lines


def filter_file(directory: Path, part: str) -> Path | None:
    """The filter file of "trn", "val" or "tst", if there is one."""
    name = {"trn": "train", "val": "val", "tst": "test"}[part]
    return found(directory, f"filter_labels_{name}.txt")


def read_filter(path: Path, num_queries: int, num_labels: int) -> csr_matrix:
    """Lines "query_row label" as a matrix of ones."""
    rows, labels = array("q"), array("q")
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not all(field.isdecimal() for field in fields):
            raise UserError(f'{path}, line {number}: expected "query_row label" like "12 4", not {line[:40]!r}.')
        row, label = map(int, fields)
        if row >= num_queries or label >= num_labels:
            raise UserError(
                f"{path}, line {number}: query {row}, label {label} is out of range; "
                f"there are {num_queries} queries and {num_labels} labels, numbered from 0."
            )
        rows.append(row)
        labels.append(label)
    filtered = csr_matrix((np.ones(len(rows), np.float32), (rows, labels)), shape=(num_queries, num_labels))
    filtered.data[:] = 1.0  # a pair named twice was added up
    return filtered
