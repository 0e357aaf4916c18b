"""The formats of `primexmc predict`. Each turns answers into bytes that are only ever appended, so that a run which was
killed can go on; a format that is no plain text is made of these bytes at the end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from .answers import Answers

FORMATS = ("jsonl", "tsv", "npz", "parquet")


class Format(ABC):
    """What is appended, and what becomes of it."""

    is_text: bool = True  # the bytes are the file

    def beginning(self, first: Answers) -> bytes:
        """What stands before all rows, given the first of them."""
        return b""

    @abstractmethod
    def appended(self, answers: Answers) -> bytes: ...

    def make(self, part: Path, place: Path) -> None:
        """Where the bytes are not the file: writes it to `place` from all that was appended."""
        raise NotImplementedError


def open_format(name: str, num_labels: int, *, probability: bool) -> Format:
    """By name."""
    if name == "npz":
        from .npz import MatrixFormat

        return MatrixFormat(num_labels, probability=probability)
    if name == "parquet":
        from .parquet import ParquetFormat

        return ParquetFormat(probability=probability)
    return JsonLines() if name == "jsonl" else TabSeparated(probability=probability)


class JsonLines(Format):
    """An object a text."""

    def appended(self, answers: Answers) -> bytes:
        lines = []
        for _, question, labels in answers.rows():
            own = {} if question.uid_column is None else {question.uid_column: question.uid}
            row = {**own, "text": question.text, "labels": [_rounded(label) for label in labels]}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        return _encoded("".join(lines))


class TabSeparated(Format):
    """A line a prediction."""

    def __init__(self, *, probability: bool) -> None:
        self.probability = probability

    def beginning(self, first: Answers) -> bytes:
        more = ["probability"] if self.probability else []
        column = first.questions[0].uid_column if first.questions else None
        more += [] if column is None else [f"query_{column}"]
        return _encoded("\t".join(["query", "rank", "score", "uid", "label", "text", *more]) + "\n")

    def appended(self, answers: Answers) -> bytes:
        lines = []
        for row, question, labels in answers.rows():
            own = [] if question.uid_column is None else ["" if question.uid is None else question.uid]
            for rank, label in enumerate(labels, start=1):
                cells = [row, rank, f"{label['score']:.6f}", label["uid"], label["label"], question.text]
                cells += [f"{label['probability']:.6f}"] if self.probability else []
                lines.append("\t".join(_cell(cell) for cell in [*cells, *own]) + "\n")
        return _encoded("".join(lines))


def _rounded(label: dict[str, Any]) -> dict[str, Any]:
    """Six digits tell all that a float32 knows."""
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in label.items()}


def _cell(value: object) -> str:
    return " ".join(str(value).replace("\t", " ").splitlines())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
