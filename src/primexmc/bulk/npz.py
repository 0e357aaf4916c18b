"""Scores as one csr matrix, texts x labels, made without ever holding it in memory.

What is appended are blocks: the number of rows and of answers, answers a row, ids, scores. At the end they are copied
array by array into the archive that scipy.sparse.load_npz reads.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .answers import Answers
from .formats import Format

Array = npt.NDArray[Any]
Block = tuple[Array, Array, Array]  # answers a row, ids, scores


class MatrixFormat(Format):
    """Within a row the ids rise. With `probability` the values are probabilities."""

    is_text = False

    def __init__(self, num_labels: int, *, probability: bool) -> None:
        self.num_labels, self.value = num_labels, "probability" if probability else "score"

    def appended(self, answers: Answers) -> bytes:
        rows = [sorted((label["id"], label[self.value]) for label in labels) for _, _, labels in answers.rows()]
        counts = np.array([len(row) for row in rows], dtype="<i4")
        ids = np.array([id for row in rows for id, _ in row], dtype="<i4")
        values = np.array([value for row in rows for _, value in row], dtype="<f4")
        head = np.array([len(counts), len(ids)], dtype="<i8")
        return b"".join(array.tobytes() for array in (head, counts, ids, values))

    def make(self, part: Path, place: Path) -> None:
        num_rows = sum(len(counts) for counts, _, _ in _blocks(part))
        num_answers = sum(len(ids) for _, ids, _ in _blocks(part))
        index_type = "<i4" if num_answers < 2**31 else "<i8"
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "indices", index_type, num_answers, part, lambda block: block[1])
            starts = _Starts()
            _add(archive, "indptr", index_type, num_rows + 1, part, starts, first=[0])
            _add(archive, "data", "<f4", num_answers, part, lambda block: block[2])
            _add_whole(archive, "shape", np.array([num_rows, self.num_labels], dtype="<i8"))
            _add_whole(archive, "format", np.array(b"csr"))


class _Starts:
    """Where each row ends, counted through all blocks."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, block: Block) -> Array:
        ends: Array = self.last + np.cumsum(block[0], dtype=np.int64)
        self.last = int(ends[-1]) if len(ends) else self.last
        return ends


def _blocks(part: Path) -> Iterator[Block]:
    with part.open("rb") as stream:
        while head := stream.read(16):
            rows, answers = np.frombuffer(head, dtype="<i8").tolist()
            counts = np.frombuffer(stream.read(4 * rows), dtype="<i4")
            ids = np.frombuffer(stream.read(4 * answers), dtype="<i4")
            yield counts, ids, np.frombuffer(stream.read(4 * answers), dtype="<f4")


def _add(
    archive: zipfile.ZipFile,
    name: str,
    type: str,
    length: int,
    part: Path,
    piece: Callable[[Block], Array],
    first: list[int] | None = None,
) -> None:
    """One array of the archive, block by block."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        header = {"descr": type, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(np.array(first or [], dtype=type).tobytes())
        for block in _blocks(part):
            stream.write(piece(block).astype(type).tobytes())


def _add_whole(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    with archive.open(f"{name}.npy", "w") as stream:
        np.lib.format.write_array(stream, array)
