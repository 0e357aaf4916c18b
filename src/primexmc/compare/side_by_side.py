"""Trainings side by side: processes that share the runs of a comparison."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import current_thread, main_thread

from ..training.saver import Interrupted
from .board import Board
from .comparison import Comparison, Job, Say
from .worker import Errand, Worker


def run_side_by_side(
    comparisons: Sequence[Comparison], jobs: Sequence[tuple[int, Job]], num_processes: int, deadline: float, say: Say
) -> list[str]:
    """Makes what is missing of the jobs, each with the number of its comparison, in their order; says what failed.

    No run starts after the deadline (of `time.perf_counter`).
    """
    board = Board(jobs, deadline, say)
    workers = [Worker(number, comparisons, num_processes) for number in range(1, num_processes + 1)]
    try:
        with _stopping_when_told(), ThreadPoolExecutor(num_processes) as threads:
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


@contextmanager
def _stopping_when_told() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _keep_busy(worker: Worker, board: Board) -> None:
    while (found := board.next()) is not None:
        number, job = found
        started = time.perf_counter()
        errand = Errand(number, job.method, list(job.keys), job.task.seed)
        failure, shown = worker.run(errand)
        board.done(job, f"{shown}  ({time.perf_counter() - started:.0f} s)", failure, worker.log)
