"""What a method is given and what it gives back: the whole surface between `compare` and a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..config import Settings
from ..data.corpus import Corpus
from ..evaluation.samples import SampledAnswer

NO_MODE = "-"


@dataclass(frozen=True, kw_only=True)
class Task:
    """The same for all methods of a comparison, except for the seed and the place."""

    corpus: Corpus
    settings: Settings  # without any method's own
    preset: str | None
    values: Mapping[str, Any]  # what the user named, by dotted key: it wins over the method's settings
    seed: int
    place: Path  # for what the method keeps while it runs; a second call finds it again
    checkout: Path | None  # where peers live
    quiet: bool

    @property
    def judging(self) -> dict[str, Any]:
        """The settings by which every method is judged."""
        data = self.settings.data
        return {
            "data.propensity_a": data.propensity_a,
            "data.propensity_b": data.propensity_b,
            "search.top": self.settings.search.top,
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a method is going to do; a row that was made by the same plan need not be made again."""

    settings: Mapping[str, Any]
    encoder: str = "-"
    text_len: int | str = "-"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Metrics in percent by mode, and how they came about."""

    scores: Mapping[str, Mapping[str, Any]]
    train_s: float
    chosen_on: str = "rule"
    more: Mapping[str, Any] = field(default_factory=dict)
    curve: Sequence[Mapping[str, Any]] = ()  # validation while it trained
    samples: Mapping[str, Sequence[SampledAnswer]] = field(default_factory=dict)  # by mode, for the report


class Method(Protocol):
    """Anything that ranks labels for the test queries."""

    @property
    def name(self) -> str: ...
    @property
    def modes(self) -> tuple[str, ...]:
        """The modes in which it predicts."""
        ...

    @property
    def seeded(self) -> bool:
        """Whether another seed may give other numbers."""
        ...

    def plan(self, task: Task) -> Plan:
        """Quick: it says whether a row that is there is the one that is wanted."""
        ...

    def check(self, task: Task) -> None:
        """Raises UserError where `run` could not go through."""
        ...

    def run(self, task: Task, modes: Sequence[str]) -> Outcome: ...
