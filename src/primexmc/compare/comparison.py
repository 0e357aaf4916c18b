"""One comparison: which rows are there already, which are to be made, and what stands in a row."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Settings
from ..data.corpus import Corpus
from .field import Field, Row
from .provenance import commit, row_command, row_key
from .task import Method, Outcome, Plan, Task

MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@10", "R@100")
RUNNING = ".running"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """A method with one seed, and the rows that it is to give: by mode, with their keys."""

    method: Method
    task: Task
    plan: Plan
    keys: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What all methods of one call share."""

    corpus: Corpus
    data_key: str
    settings: Settings
    preset: str | None
    values: Mapping[str, Any]
    field: Field
    checkout: Path | None
    command: Sequence[str]
    quiet: bool
    say: Say

    def run(self, chosen: Sequence[tuple[Method, Sequence[str]]], seeds: Sequence[int]) -> list[Row]:
        """All rows, in the order of the methods; what cannot run is said before anything slow begins."""
        jobs = [
            self._job(method, modes, seed)
            for method, modes in chosen
            for seed in (seeds if method.seeded else seeds[:1])
        ]
        for job in jobs:
            if self._missing(job):
                job.method.check(job.task)
        return [row for job in jobs for row in self._rows(job)]

    def _job(self, method: Method, modes: Sequence[str], seed: int) -> Job:
        task = Task(
            corpus=self.corpus,
            settings=self.settings,
            preset=self.preset,
            values=self.values,
            seed=seed,
            place=self.field.directory / RUNNING,
            checkout=self.checkout,
            quiet=self.quiet,
        )
        plan = method.plan(task)
        keys = {mode: row_key(self.data_key, method.name, mode, seed, plan.settings) for mode in modes}
        place = task.place / f"{method.name}-{row_key(self.data_key, method.name, '', seed, plan.settings)}"
        return Job(method, dataclasses.replace(task, place=place), plan, keys)

    def _missing(self, job: Job) -> list[str]:
        return [mode for mode, key in job.keys.items() if self.field.find(key) is None]

    def _rows(self, job: Job) -> list[Row]:
        """From field.json where they are all there, else measured and written."""
        name, missing = f"{job.method.name}, seed {job.task.seed}", self._missing(job)
        if missing:
            self.say(f"{name}:")
            outcome = job.method.run(job.task, missing)
            for mode in missing:
                self.field.add(self._row(job, mode, outcome))
            _clear(job.task.place)
        else:
            self.say(f"{name}: is in {self.field.path} already.")
        return [row for key in job.keys.values() if (row := self.field.find(key)) is not None]

    def _row(self, job: Job, mode: str, outcome: Outcome) -> Row:
        scores = outcome.scores[mode]
        return {
            "data": self.corpus.name,
            "encoder": job.plan.encoder,
            "text_len": job.plan.text_len,
            "method": job.method.name,
            "mode": mode,
            "seed": job.task.seed,
            "filtered": self.corpus.split("test").filtered is not None,
            "chosen_on": outcome.chosen_on,
            **{name: round(scores[name], 3) for name in MEASURES if name in scores},
            "train_s": round(outcome.train_s, 1),
            **outcome.more,
            "commit": commit(),
            "command": row_command(self.command, job.method.name, mode, job.task.seed),
            "settings": dict(job.plan.settings),
            "key": job.keys[mode],
        }


def _clear(place: Path) -> None:
    """What a method kept while it ran; and the directory above when it was the last."""
    shutil.rmtree(place, ignore_errors=True)
    if place.parent.is_dir() and not any(place.parent.iterdir()):
        place.parent.rmdir()
