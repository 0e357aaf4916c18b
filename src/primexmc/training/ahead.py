"""What the next steps need, made in a second thread while a step is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
AHEAD = 2


def made_ahead(make: Callable[[IntArray, int], T], batches: Sequence[IntArray], first_step: int) -> Iterator[T]:
    """`make(queries, step)` of each batch, in order; `AHEAD` of them are in the making while one is used."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting: list[Future[T]] = []
        for index, queries in enumerate(batches):
            waiting.append(thread.submit(make, queries, first_step + index))
            if len(waiting) > AHEAD:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
