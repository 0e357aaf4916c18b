"""Answers: some questions, in the order of the input, and what the model says to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .questions import Question

if TYPE_CHECKING:
    from ..model.model import Prediction


@dataclass(frozen=True)
class Answers:
    """`predictions[i]` are of `questions[i]`, which is row `first_row + i` of the input, counted from 1."""

    first_row: int
    questions: Sequence[Question]
    predictions: Sequence[Sequence[Prediction]]
    probabilities: Sequence[Sequence[float]] | None = None  # where they were asked for

    def rows(self) -> Iterator[tuple[int, Question, list[dict[str, Any]]]]:
        """(row, question, its labels as plain values, best first)."""
        for number, (question, found) in enumerate(zip(self.questions, self.predictions, strict=True)):
            labels = [answer._asdict() for answer in found]
            if self.probabilities is not None:
                for label, probability in zip(labels, self.probabilities[number], strict=True):
                    label["probability"] = probability
            yield self.first_row + number, question, labels
