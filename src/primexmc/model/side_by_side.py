"""Blocks of queries, answered side by side on a CPU.

What follows the encoder is many small steps, and torch's threads wait for each other after every one of them. A thread
for each block, which asks for no other threads, keeps all cores at work from end to end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

FEWEST, MOST = 32, 256  # queries of a block

Answer = TypeVar("Answer")


def side_by_side(answer: Callable[[slice], Answer], num_queries: int) -> list[Answer]:
    """The answers for all rows, block by block, in order; in as many threads as torch has here."""
    threads = torch.get_num_threads()
    size = min(max(-(-num_queries // threads), FEWEST), MOST)
    blocks = [slice(start, min(start + size, num_queries)) for start in range(0, num_queries, size)]
    if threads == 1 or len(blocks) <= 1:
        return [answer(block) for block in blocks or [slice(0, 0)]]
    answer(slice(0, 1))  # what is made when it is first asked for is made once
    return list(_pool(os.getpid(), threads).map(answer, blocks))


@lru_cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads for which torch is single-threaded. torch also takes their number for that of threads to come: it is put
    right as soon as all have started."""
    pool = ThreadPoolExecutor(threads, "primexmc", initializer=_alone)
    all_here = threading.Barrier(threads)
    list(pool.map(lambda _: all_here.wait(), range(threads)))
    torch.set_num_threads(threads)
    return pool


def _alone() -> None:
    torch.get_num_threads()  # a new thread takes over the number for all when it is first asked, later than this
    torch.set_num_threads(1)
