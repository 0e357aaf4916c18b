"""Answers as Parquet, a row a text. What is appended are Arrow record batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import UserError
from .answers import Answers
from .formats import Format

ROWS_PER_GROUP = 16_384


class ParquetFormat(Format):
    """The columns query, uid where the input has one, text and labels (a list of structs)."""

    is_text = False

    def __init__(self, *, probability: bool) -> None:
        try:
            import pyarrow
        except ImportError:
            raise UserError('Parquet needs pyarrow: pip install "primexmc[data]"; or take another --format.') from None
        fields = {"label": pyarrow.string(), "uid": pyarrow.string(), "id": pyarrow.int64(), "score": pyarrow.float32()}
        if probability:
            fields["probability"] = pyarrow.float32()
        self.arrow, self.labels = pyarrow, pyarrow.list_(pyarrow.struct(fields))

    def beginning(self, first: Answers) -> bytes:
        """The schema."""
        column = first.questions[0].uid_column if first.questions else None
        return bytes(self._schema(column).serialize())

    def appended(self, answers: Answers) -> bytes:
        column = answers.questions[0].uid_column
        rows: list[dict[str, Any]] = []
        for number, question, labels in answers.rows():
            row = {"query": number, "text": question.text.encode("utf-8", "replace").decode(), "labels": labels}
            if column is not None:
                row[column] = None if question.uid is None else str(question.uid)
            rows.append(row)
        return bytes(self.arrow.RecordBatch.from_pylist(rows, schema=self._schema(column)).serialize())

    def make(self, part: Path, place: Path) -> None:
        from pyarrow import ipc, parquet

        with part.open("rb") as stream:
            schema = ipc.read_schema(ipc.read_message(stream))
            with parquet.ParquetWriter(place, schema) as file:
                for group in _groups(_batches(stream, schema)):
                    file.write_table(self.arrow.Table.from_batches(group, schema=schema))

    def _schema(self, uid_column: str | None) -> Any:
        arrow = self.arrow
        own = {} if uid_column is None else {uid_column: arrow.string()}
        return arrow.schema({"query": arrow.int64(), **own, "text": arrow.string(), "labels": self.labels})


def _batches(stream: Any, schema: Any) -> Iterator[Any]:
    from pyarrow import ipc

    while True:
        try:
            message = ipc.read_message(stream)
        except EOFError:
            return
        yield ipc.read_record_batch(message, schema)


def _groups(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """Batches that make a row group together."""
    for batch in batches:
        group, rows = [batch], batch.num_rows
        while rows < ROWS_PER_GROUP and (more := list(itertools.islice(batches, 1))):
            group += more
            rows += more[0].num_rows
        yield group
