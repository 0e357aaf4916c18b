"""Trainings side by side: processes that each make one result after another, told by the one that was started.

A process keeps its imports, its data and its GPU from run to run. One in which a run failed is ended and a fresh one
takes its place, so that no failure reaches the others.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import UserError
from ..training.saver import Interrupted
from .comparison import Comparison, Job, Say
from .task import Method

LOGS = "logs"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Errand:
    """One run: of which comparison, and what; small enough to be sent."""

    comparison: int
    method: Method
    modes: Sequence[str]
    seed: int


def run_side_by_side(
    comparisons: Sequence[Comparison], jobs: Sequence[tuple[int, Job]], num_processes: int, deadline: float, say: Say
) -> list[str]:
    """Makes what is missing of the jobs, each with the number of its comparison, in their order; says what failed.

    No run starts after the deadline (of `time.perf_counter`).
    """
    board = _Board(jobs, deadline, say)
    workers = [_Worker(number, comparisons, num_processes) for number in range(1, num_processes + 1)]
    try:
        with ThreadPoolExecutor(num_processes) as threads:
            futures = [threads.submit(_keep_busy, worker, board) for worker in workers]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                board.stopped = True
                for worker in workers:
                    worker.interrupt()
                raise
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on from there.") from None
    finally:
        for worker in workers:
            worker.end()
    if board.left:
        say(f"Time is up: {board.left} of {board.total} runs were not begun; the same command goes on with them.")
    return board.failures


class _Board:
    """Who does what: hands out the jobs one by one, and takes down how they went."""

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


def _keep_busy(worker: _Worker, board: _Board) -> None:
    while (found := board.next()) is not None:
        number, job = found
        started = time.perf_counter()
        errand = Errand(number, job.method, list(job.keys), job.task.seed)
        failure, shown = worker.run(errand)
        board.done(job, f"{shown}  ({time.perf_counter() - started:.0f} s)", failure, worker.log)


class _Worker:
    """A process, started when it is first needed and again after a failure."""

    def __init__(self, number: int, comparisons: Sequence[Comparison], num_processes: int) -> None:
        self._comparisons = [replace(comparison, say=_SAY) for comparison in comparisons]
        self._threads = max(1, _num_cores() // num_processes)
        self.log = comparisons[0].field.directory / LOGS / f"worker-{number}.log"
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, errand: Errand) -> tuple[str | None, str]:
        """What went wrong, if anything did, and what came out in a few words."""
        pipe = self._pipe or self._start()
        try:
            pipe.send(errand)
            failure, shown = pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            failure, shown = f"its process ended with exit code {self._process.exitcode}", ""
        if failure is not None:
            self.end()
        return failure, shown

    def interrupt(self) -> None:
        if self._process is not None:
            self._process.terminate()  # a training saves itself and stops

    def end(self) -> None:
        """A process that has nothing to do ends by itself when its pipe is closed."""
        if self._pipe is not None:
            self._pipe.close()
            self._process.join()
        self._pipe = self._process = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")  # CUDA does not outlive a fork
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self._comparisons, self._threads, self.log)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        with _own_threads(self._threads):
            self._process.start()
        theirs.close()
        return self._pipe


_STARTING = Lock()
_SAY: Callable[[str], None] = print


@contextmanager
def _own_threads(threads: int) -> Iterator[None]:
    """What a process inherits when it starts: libraries read these once."""
    with _STARTING:
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, str(threads)))
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _work(pipe: Connection, comparisons: Sequence[Comparison], threads: int, log: Path) -> None:
    """A process's life: what it prints goes to its log."""
    import torch

    torch.set_num_threads(threads)
    os.setpgid(0, 0)  # Ctrl-C reaches us through the one who started us, once
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", buffering=1, encoding="utf-8") as stream:
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(stream.fileno(), descriptor)
        while True:
            try:
                errand = pipe.recv()
            except (EOFError, KeyboardInterrupt):
                return
            pipe.send(_made(comparisons[errand.comparison], errand))


def _made(comparison: Comparison, errand: Errand) -> tuple[str | None, str]:
    try:
        rows = comparison.make(errand.method, errand.modes, errand.seed)
    except (Exception, KeyboardInterrupt) as error:
        if not isinstance(error, UserError):
            traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0], ""
    finally:
        sys.stdout.flush()
    return None, "  ".join(f"P@1 {row['P@1']:.1f}" for row in rows if "P@1" in row)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
