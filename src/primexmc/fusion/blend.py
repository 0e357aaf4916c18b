"""Blend: how much each voice counts beside the cosine with the prototype; chosen on validation, kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .judge import Judge

# What predicts: the prototypes ("theta") alone or with a voice; the classifier ("W") alone, with the prototypes or with
# the memory; "all" that the model has. Those that need less come first.
MODES = ("theta", "memory", "lexical", "W", "theta+W", "W+memory", "all")
OF_CLASSIFIER = ("W", "theta+W", "W+memory")  # only of a model that has one


@dataclass(frozen=True)
class Weights:
    """A candidate's score is its cosine + memory x the share of its neighbours' votes + lexical x its words' score, and
    what a judge adds, where there is one.

    Its cosine is (1 - classifier) x that with the prototype + classifier x that with the classifier's vector.
    """

    memory: float = 0.0
    lexical: float = 0.0
    temperature: float = 0.05  # of the memory's shares
    classifier: float = 0.0  # between 0, the prototypes alone, and 1, the classifier alone
    judge: Judge | None = None

    @property
    def asks_memory(self) -> bool:
        return self.memory != 0 or (self.judge is not None and self.judge.asks_memory)

    @property
    def asks_words(self) -> bool:
        return self.lexical != 0 or (self.judge is not None and self.judge.asks_words)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Weights:
        """The inverse of `dataclasses.asdict`, also from JSON."""
        judge = values.get("judge")
        numbers = {name: float(value) for name, value in values.items() if name != "judge"}
        return cls(**numbers, judge=None if judge is None else Judge.from_dict(judge))


# Where no validation has chosen, for modes that are asked for by name.
DEFAULTS: Mapping[str, Weights] = {
    "memory": Weights(memory=0.2),
    "lexical": Weights(lexical=0.1),
    "W": Weights(classifier=1.0),
    "theta+W": Weights(classifier=0.5),
    "W+memory": Weights(memory=0.2, classifier=1.0),
    "all": Weights(memory=0.2, lexical=0.1, classifier=0.5),
}


@dataclass(frozen=True)
class Blend:
    """The weights of each mode, and which mode was best on validation."""

    weights: Mapping[str, Weights] = field(default_factory=lambda: DEFAULTS)
    best: str = "theta"

    def of(self, mode: str) -> Weights:
        """The weights of a mode; "auto" is the one that was best."""
        return self.weights.get(self.named(mode), Weights())

    def named(self, mode: str) -> str:
        """What "auto" stands for."""
        return self.best if mode == "auto" else mode

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"best": self.best, "weights": {mode: asdict(weights) for mode, weights in self.weights.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Blend:
        """The inverse; a KeyError, TypeError or ValueError where the values are no blend."""
        weights = {mode: Weights.from_dict(of_mode) for mode, of_mode in values["weights"].items()}
        if values["best"] not in MODES or not set(weights) <= set(MODES):
            raise ValueError(f"unknown modes among {sorted({values['best'], *weights})}")
        return cls(weights, values["best"])
