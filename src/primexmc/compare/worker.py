"""A process that makes one result after another, told by the one that started it.

It keeps its imports, its data and its GPU from run to run. One in which a run failed is ended, and a fresh one takes
its place: no failure reaches the next run.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from ..errors import UserError
from .comparison import Comparison
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


class Worker:
    """A process, started when it is first needed and again after a failure."""

    def __init__(self, number: int, comparisons: Sequence[Comparison], num_processes: int) -> None:
        self._comparisons = [replace(comparison, say=_SAY) for comparison in comparisons]
        self._threads = max(1, _num_cores() // num_processes)
        self.log = comparisons[0].field.directory / LOGS / f"worker-{number}.log"
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, errand: Errand) -> tuple[str | None, str]:
        """What went wrong, if anything did, and what came out in a few words."""
        try:
            pipe = self._pipe or self._start()
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
        self._process = context.Process(target=_work, args=(theirs, self._threads, self.log), daemon=True)
        with _own_threads(self._threads):
            self._process.start()
        theirs.close()
        self._pipe.send(self._comparisons)  # not with the arguments: others would wait until this one has its imports
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


def _work(pipe: Connection, threads: int, log: Path) -> None:
    """A process's life: what it prints goes to its log."""
    import torch

    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    os.setpgid(0, 0)  # Ctrl-C reaches us through the one who started us, once
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", buffering=1, encoding="utf-8") as stream:
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(stream.fileno(), descriptor)
        try:
            comparisons = pipe.recv()
            while True:
                errand = pipe.recv()
                pipe.send(_made(comparisons[errand.comparison], errand))
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            return


def _end_with_parent() -> None:
    """Nobody waits for what an orphan makes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


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
