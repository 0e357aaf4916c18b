"""Asking: the questions of a source, batch by batch, and the model that answers them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import UserError
from ..model.selection import Selection
from .answers import Answers
from .per_query import QueryFilter
from .questions import Columns, Question, batches_of_questions

NO_COLUMNS = Columns()


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is wanted of each text."""

    top: int = 5
    probability: bool = False
    format: str = "jsonl"
    batch_size: int = 256
    input_format: str | None = None  # one of KINDS; None: by the ending of the name
    columns: Columns = NO_COLUMNS


@dataclass(frozen=True)
class Asking:
    """The questions of a source, and the model that answers them."""

    selection: Selection
    source: str
    wish: Wish
    filters: QueryFilter | None

    def answers(self, skip: int, digest: Digest) -> Iterator[Answers]:
        """Batch by batch, without the first `skip` rows: of these only the digest is taken."""
        row, wish = 1, self.wish
        for questions in batches_of_questions(self.source, wish.batch_size, wish.input_format, wish.columns):
            done, left = _cut(questions, skip + 1 - row)
            digest.update(done)
            row += len(done)
            if left:
                digest.check()
                digest.update(left)
                yield self._answer(row, left)
                row += len(left)
        if row <= skip:
            raise UserError(f"{self.source}: {row - 1} texts, but {skip} were done before; it is another file.")
        digest.check()

    def _answer(self, first_row: int, questions: list[Question]) -> Answers:
        selection, texts = self.selection, [question.text for question in questions]
        filtered = None if self.filters is None else self.filters.pairs(first_row, questions)
        found = selection.predict(texts, self.wish.top, filtered)
        probabilities = selection.model.probabilities(found) if self.wish.probability else None
        return Answers(first_row, questions, found, probabilities)


class Digest:
    """Stands for all texts so far, so that a run is only continued on the texts that it was begun with."""

    def __init__(self, expected: str = "") -> None:
        self.hash, self.expected = hashlib.blake2b(digest_size=16), expected

    def update(self, questions: list[Question]) -> None:
        for question in questions:
            self.hash.update(f"{question.text}\0{question.uid}\0".encode("utf-8", "replace"))

    def check(self) -> None:
        if self.expected and self.expected != self.hash.hexdigest():
            raise UserError("the first texts are not those of the run before; run without --resume to begin afresh.")
        self.expected = ""


def _cut(questions: list[Question], place: int) -> tuple[list[Question], list[Question]]:
    return questions[: max(place, 0)], questions[max(place, 0) :]
