"""Methods of ours: a few settings laid over a preset, trained by the one loop.

What the user names wins over the recipe, the recipe over the preset; what nobody names is derived from the data. A
table `[times]` multiplies what the setting is without the recipe: "half the batch" means half of every other method's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Settings, flatten
from ..data.corpus import Corpus
from ..evaluation.evaluate import evaluate
from ..fusion.blend import MODES
from ..model.description import DESCRIPTION
from ..model.encode import pick_device
from ..model.model import PrimeModel
from ..training.checkpoint import has_checkpoint
from ..training.place import FOLDER
from ..training.resolve import resolve
from ..training.saver import Interrupted
from ..training.train import train
from .costs import step_costs
from .measure import classifier_seconds, costs_of, forget_peak, learning_curve, samples_of, training_log
from .task import Outcome, Plan, Task

FREE = {"training.device", "training.threads", "training.checkpoint_every_s"}  # the same numbers whatever they are


@dataclass(frozen=True)
class Recipe:
    """A method of ours."""

    name: str
    values: Mapping[str, Any]  # by dotted key
    times: Mapping[str, float]
    modes: tuple[str, ...] = MODES
    seeded: bool = True

    @classmethod
    def from_file(cls, name: str, content: Mapping[str, Any]) -> Recipe:
        sections = {section: values for section, values in content.items() if section != "times"}
        recipe = cls(name, dict(flatten(sections)), content.get("times", {}))
        Settings().with_values(recipe.values, f"method {name}")
        return recipe

    def plan(self, task: Task) -> Plan:
        settings = self.settings(task)
        named = {key: value for key, value in flatten(settings.to_dict()) if key not in FREE}
        encoder = Path(settings.encoder.name).name  # wherever it lies
        return Plan(settings={**named, "encoder.name": encoder}, encoder=encoder, text_len=settings.data.query_tokens)

    def check(self, task: Task) -> None:
        pick_device(self.settings(task).training.device)

    def run(self, task: Task, modes: Sequence[str]) -> Outcome:
        forget_peak()
        model = self.trained(task)
        validated = bool(model.facts["validation"])
        scores, samples = {}, {}
        for mode in modes:
            model.mode = mode
            scores[mode], samples[mode] = evaluate(model, task.corpus), samples_of(model, task.corpus)
        return Outcome(
            scores=scores,
            train_s=model.facts["train_s"],
            chosen_on="validation" if validated else "rule",
            more={
                "epochs": model.facts["epochs"],
                "device": model.device.type,
                **costs_of(model, task.place, task.corpus),
                **classifier_seconds(training_log(task.place)),
                **step_costs(task.corpus, model.settings),
            },
            curve=learning_curve(training_log(task.place)),
            samples=samples,
        )

    def settings(self, task: Task) -> Settings:
        """All of them, derived ones included."""
        settings = self.resolved(task.corpus, task.preset, task.values)
        return settings.with_values({"training.seed": task.seed}, f"method {self.name}")

    def resolved(self, corpus: Corpus, preset: str | None, values: Mapping[str, Any]) -> Settings:
        """Where `values` are what the user names."""
        settings, _ = resolve(corpus, preset, None, {**self.values, **values})
        scaled = {key: _scaled(settings, key, factor) for key, factor in self.times.items()}
        return settings.with_values(scaled, f"method {self.name}")

    def trained(self, task: Task) -> PrimeModel:
        """Continues what a stopped call has left."""
        if (task.place / DESCRIPTION).exists() and not has_checkpoint(task.place / FOLDER):
            return PrimeModel.load(task.place, self.settings(task).training.device)
        resume = has_checkpoint(task.place / FOLDER)
        values = self.settings(task).to_dict()
        try:
            return train(task.corpus, task.preset, values, out=task.place, resume=resume, quiet=task.quiet)
        except Interrupted:
            raise Interrupted("stopped; the same command goes on from there.") from None


def _scaled(settings: Settings, key: str, factor: float) -> float:
    section, name = key.split(".")
    value = getattr(getattr(settings, section), name)
    return max(1, math.floor(value * factor)) if isinstance(value, int) else value * factor
