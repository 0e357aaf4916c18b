"""Who does what of several at work: runs are handed out one by one, and how they went is taken down."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from .comparison import Job, Say


class Board:
    """Jobs, each with the number of its comparison, in their order; none is handed out after the deadline."""

    def __init__(self, jobs: Sequence[tuple[int, Job]], deadline: float, say: Say) -> None:
        self._waiting, self._deadline, self._say, self._lock = list(jobs), deadline, say, Lock()
        self._begun, self._done, self.total = time.perf_counter(), 0, len(jobs)
        self.failures: list[str] = []
        self.stopped = False

    @property
    def left(self) -> int:
        return len(self._waiting)

    def next(self) -> tuple[int, Job] | None:
        with self._lock:
            late = self.stopped or time.perf_counter() > self._deadline
            return None if late or not self._waiting else self._waiting.pop(0)

    def done(self, job: Job, result: str, failure: str | None, log: Path) -> None:
        with self._lock:
            self._done += 1
            name = f"{job.task.corpus.name}: {job.method.name}, seed {job.task.seed}"
            if failure is not None:
                self.failures.append(f"{name}: {failure}")
                result = f"failed: {failure} ({log})"
            seconds = time.perf_counter() - self._begun
            self._say(f"[{self._done}/{self.total}, {seconds:.0f} s] {name}: {result}")
