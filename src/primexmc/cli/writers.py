"""Predictions to a file or to stdout, in the formats of `primexmc predict`."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from scipy.sparse import csr_matrix, save_npz

from ..errors import UserError

if TYPE_CHECKING:
    from ..model.model import Prediction


class Writer(ABC):
    """Takes batches in order."""

    @abstractmethod
    def write(self, texts: Sequence[str], predictions: Sequence[Sequence[Prediction]]) -> None: ...


@contextmanager
def open_writer(format: str, place: Path | None, *, num_labels: int) -> Iterator[Writer]:
    """A writer to a new file, or to stdout where no place is named."""
    if format == "npz":
        assert place is not None
        matrix = MatrixWriter(num_labels)
        yield matrix
        matrix.save(place)
    elif format == "parquet":
        assert place is not None
        parquet = ParquetWriter(place)
        with parquet.file:
            yield parquet
    elif place is None:
        yield TEXT_WRITERS[format](sys.stdout)
    else:
        with place.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            yield TEXT_WRITERS[format](stream)


class JsonLinesWriter(Writer):
    """An object a text."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, texts: Sequence[str], predictions: Sequence[Sequence[Prediction]]) -> None:
        for text, answers in zip(texts, predictions, strict=True):
            row = {"text": text, "labels": [plain(answer) for answer in answers]}
            self.stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.stream.flush()


class TsvWriter(Writer):
    """A line a prediction."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.num_queries = stream, 0
        stream.write("query\trank\tscore\tuid\tlabel\ttext\n")

    def write(self, texts: Sequence[str], predictions: Sequence[Sequence[Prediction]]) -> None:
        for text, answers in zip(texts, predictions, strict=True):
            self.num_queries += 1
            for rank, answer in enumerate(answers, start=1):
                cells = (self.num_queries, rank, f"{answer.score:.6f}", answer.uid, answer.label, text)
                self.stream.write("\t".join(_cell(cell) for cell in cells) + "\n")
        self.stream.flush()


class MatrixWriter(Writer):
    """Scores as one csr matrix, texts x labels."""

    def __init__(self, num_labels: int) -> None:
        self.num_labels = num_labels
        self.blocks: list[csr_matrix] = [csr_matrix(np.zeros((0, num_labels), dtype=np.float32))]

    def write(self, texts: Sequence[str], predictions: Sequence[Sequence[Prediction]]) -> None:
        offsets = np.cumsum([0, *map(len, predictions)])
        ids = np.array([answer.id for answers in predictions for answer in answers], dtype=np.int64)
        scores = np.array([answer.score for answers in predictions for answer in answers], dtype=np.float32)
        self.blocks.append(csr_matrix((scores, ids, offsets), shape=(len(texts), self.num_labels)))

    def save(self, place: Path) -> None:
        from scipy.sparse import vstack

        matrix = csr_matrix(vstack(self.blocks, format="csr"))
        matrix.sort_indices()
        with place.open("wb") as stream:  # save_npz would add an ending to a name
            save_npz(stream, matrix)


class ParquetWriter(Writer):
    """A row a text, a row group a batch."""

    def __init__(self, place: Path) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise UserError('Parquet needs pyarrow: pip install "primexmc[data]"; or take another --format.') from None
        label = pyarrow.struct(
            {"label": pyarrow.string(), "uid": pyarrow.string(), "id": pyarrow.int64(), "score": pyarrow.float32()}
        )
        self.schema = pyarrow.schema(
            {"query": pyarrow.int64(), "text": pyarrow.string(), "labels": pyarrow.list_(label)}
        )
        self.file, self.num_queries, self.table = parquet.ParquetWriter(place, self.schema), 0, pyarrow.Table

    def write(self, texts: Sequence[str], predictions: Sequence[Sequence[Prediction]]) -> None:
        rows = [
            {"query": self.num_queries + number, "text": text, "labels": [answer._asdict() for answer in answers]}
            for number, (text, answers) in enumerate(zip(texts, predictions, strict=True), start=1)
        ]
        self.file.write_table(self.table.from_pylist(rows, schema=self.schema))
        self.num_queries += len(rows)


TEXT_WRITERS = {"jsonl": JsonLinesWriter, "tsv": TsvWriter}


def plain(answer: Prediction) -> dict[str, Any]:
    """A prediction for JSON; six digits tell all that a float32 knows."""
    return {**answer._asdict(), "score": round(answer.score, 6)}


def _cell(value: object) -> str:
    return " ".join(str(value).replace("\t", " ").splitlines())
