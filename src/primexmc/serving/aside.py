"""Aside: work that is not batched (explanations, neighbourhoods, changes), in a thread beside the model's, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .refusal import too_many

Result = TypeVar("Result")


class Aside:
    """One at a time, so that a change meets no other; past `limit` that wait or run, 429."""

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, 0
        self._thread = ThreadPoolExecutor(1, "aside")

    def refuse_if_full(self) -> None:
        if self._open >= self._limit:
            raise too_many(1)

    async def run(self, work: Callable[[], Result]) -> Result:
        self.refuse_if_full()
        self._open += 1
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        future.add_done_callback(self._finished)
        return await future

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _finished(self, future: asyncio.Future[Result]) -> None:
        self._open -= 1
        if not future.cancelled():
            future.exception()  # seen, also where nobody waits any more
