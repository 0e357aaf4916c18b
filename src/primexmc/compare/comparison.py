"""One comparison: which rows are there already, which are to be made, and what stands in a row."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Settings
from ..data.corpus import Corpus
from ..errors import UserError
from ..fusion.blend import OF_CLASSIFIER
from .claim import claimed
from .details import write_details
from .field import Field, Row
from .provenance import commit, row_command, row_key
from .task import Method, Outcome, Plan, Task

MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@10", "R@100")
BY_BUCKET = "R@10"
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

    def jobs(self, chosen: Sequence[tuple[Method, Sequence[str]]], num_seeds: int) -> list[Job]:
        """In the order of the methods, each with its seeds; what cannot run is said before anything slow begins."""
        first = self.settings.training.seed
        seeds = range(first, first + num_seeds)
        jobs = [
            self._job(method, modes, seed)
            for method, modes in chosen
            for seed in (seeds if method.seeded else seeds[:1])
        ]
        for job in jobs:
            if self.missing(job):
                _check_classifier(job)
                job.method.check(job.task)
        return jobs

    def run(self, jobs: Sequence[Job], deadline: float) -> int:
        """Makes what is missing, one after the other; how many were not begun before the deadline."""
        elsewhere = [job for job in jobs if not self._in_time(job, deadline, wait=False)]
        return sum(not self._in_time(job, deadline, wait=True) for job in elsewhere)

    def make(self, method: Method, modes: Sequence[str], seed: int) -> list[Row]:
        """The rows of one run."""
        job = self._job(method, modes, seed)
        self._make(job, wait=True)
        return self.rows([job])

    def rows(self, jobs: Sequence[Job]) -> list[Row]:
        """Those that are there, in order."""
        by_key = {row.get("key"): row for row in self.field.rows()}
        return [by_key[key] for job in jobs for key in job.keys.values() if key in by_key]

    def _in_time(self, job: Job, deadline: float, *, wait: bool) -> bool:
        """Whether the job is done; past the deadline only what is there counts."""
        if time.perf_counter() > deadline:
            return not self.missing(job)
        return self._make(job, wait=wait)

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

    def missing(self, job: Job) -> list[str]:
        return [mode for mode, key in job.keys.items() if self.field.find(key) is None]

    def _make(self, job: Job, *, wait: bool) -> bool:
        """Measures and writes the rows that are missing; False where another process is at it."""
        name = f"{job.method.name}, seed {job.task.seed}"
        if not self.missing(job):
            self.say(f"{name}: is in {self.field.path} already.")
            return True
        with claimed(job.task.place, wait=wait) as ours:
            if not ours:
                self.say(f"{name}: another process is at it.")
                return False
            missing = self.missing(job)
            if missing:
                self.say(f"{name}:")
                outcome = job.method.run(job.task, missing)
                for mode in missing:
                    details = {"curve": list(outcome.curve), "samples": list(outcome.samples.get(mode, ()))}
                    write_details(self.field.directory, job.keys[mode], details)
                    self.field.add(self._row(job, mode, outcome))
                shutil.rmtree(job.task.place, ignore_errors=True)
        return True

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
            **{
                f"{BY_BUCKET} {name}": round(bucket[BY_BUCKET], 3)
                for name, bucket in scores.get("buckets", {}).items()
                if BY_BUCKET in bucket  # not where the predictions do not go so deep
            },
            "train_s": round(outcome.train_s, 1),
            **outcome.more,
            "commit": commit(),
            "command": row_command(self.command, job.method.name, mode, job.task.seed),
            "settings": dict(job.plan.settings),
            "key": job.keys[mode],
        }


def _check_classifier(job: Job) -> None:
    """Modes with W are of models that have one."""
    wanted = [mode for mode in job.keys if mode in OF_CLASSIFIER]
    if wanted and not job.plan.settings.get("classifier.enabled", True):
        raise UserError(
            f'{job.method.name}: mode "{wanted[0]}" needs a classifier; train it with --set classifier.enabled=true.'
        )
