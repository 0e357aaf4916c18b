"""Blend: how much each voice counts beside the cosine with the prototype; chosen on validation, kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

VOICES = ("memory", "lexical")
# What a mode lets speak beside the prototypes ("theta"); "all" is all that the model has.
MODES: dict[str, tuple[str, ...]] = {"theta": (), "memory": ("memory",), "lexical": ("lexical",), "all": VOICES}


@dataclass(frozen=True)
class Weights:
    """A candidate's score is its cosine + memory x the share of its neighbours' votes + lexical x its words' score."""

    memory: float = 0.0
    lexical: float = 0.0
    temperature: float = 0.05  # of the memory's shares


# Where no validation has chosen, for modes that are asked for by name.
DEFAULTS: Mapping[str, Weights] = {
    "memory": Weights(memory=0.2),
    "lexical": Weights(lexical=0.1),
    "all": Weights(memory=0.2, lexical=0.1),
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
        weights = {
            mode: Weights(**{name: float(value) for name, value in of_mode.items()})
            for mode, of_mode in values["weights"].items()
        }
        if values["best"] not in MODES or not weights.keys() <= MODES.keys():
            raise ValueError(f"unknown modes among {sorted({values['best'], *weights})}")
        return cls(weights, values["best"])
