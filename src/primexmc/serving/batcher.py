"""Batcher: requests that wait together are answered together.

There is no timer: what arrives while the model is at work makes the next batch, so a lone request never waits. Every
request that waits gets a fair part of each batch; a request of a thousand texts goes through in pieces beside the
small ones and holds up nobody. The queue is bounded: past it a request is refused before anything is done for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from .limits import Limits
from .refusal import too_many

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(eq=False)
class _Request(Generic[Item, Answer]):
    items: Sequence[Item]
    done: asyncio.Future[list[Answer]]
    answers: list[Answer] = field(default_factory=list)
    taken: int = 0

    @property
    def left(self) -> int:
        return len(self.items) - self.taken

    def take(self, count: int) -> Sequence[Item]:
        part = self.items[self.taken : self.taken + count]
        self.taken += len(part)
        return part


Parts: TypeAlias = list[tuple[_Request[Item, Answer], Sequence[Item]]]


class Batcher(Generic[Item, Answer]):
    """`answer` turns a list of items into as many answers, in one thread; all else happens in the event loop."""

    def __init__(self, answer: Callable[[list[Item]], list[Answer]], limits: Limits) -> None:
        self._answer, self._limits = answer, limits
        self._queue: deque[_Request[Item, Answer]] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "model")
        self._items_per_s = 100.0  # a guess until batches have been measured
        self.batch_sizes: Callable[[int], None] = lambda size: None  # is told of every batch

    @property
    def waiting_requests(self) -> int:
        return len(self._queue)

    @property
    def waiting_items(self) -> int:
        return sum(request.left for request in self._queue)

    async def submit(self, items: Sequence[Item]) -> list[Answer]:
        """The items' answers in their order, or a Refusal at once."""
        if not items:
            return []
        self.refuse_if_full(len(items))
        request: _Request[Item, Answer] = _Request(items, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self._arrived.set()
        try:
            return await request.done
        finally:  # who no longer waits is not worked for
            if request in self._queue:
                self._queue.remove(request)

    def refuse_if_full(self, num_items: int = 1) -> None:
        """One request that is larger than all that may wait is still let in when nothing waits."""
        waiting = self.waiting_items
        full = self.waiting_requests >= self._limits.waiting_requests
        if full or (waiting and waiting + num_items > self._limits.waiting_texts):
            raise too_many(waiting / self._items_per_s)

    async def run(self) -> None:
        """Answers until it is cancelled."""
        while True:
            await self._arrived.wait()
            parts = self._next_batch()
            if parts:
                await self._answer_parts(parts)
            else:
                self._arrived.clear()

    async def _answer_parts(self, parts: Parts[Item, Answer]) -> None:
        items = [item for _, part in parts for item in part]
        started = time.perf_counter()
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, items)
        except Exception as error:
            if len(parts) > 1:  # whoever broke it breaks it alone
                for part in parts:
                    await self._answer_parts([part])
            elif not parts[0][0].done.done():
                parts[0][0].done.set_exception(error)
            return
        self._items_per_s += 0.1 * (len(items) / (time.perf_counter() - started) - self._items_per_s)
        self.batch_sizes(len(items))
        _hand_out(parts, answers)

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    def _next_batch(self) -> Parts[Item, Answer]:
        """About as much from each that waits, oldest first; who is not finished goes to the end of the queue."""
        parts: Parts[Item, Answer] = []
        room = self._limits.batch_texts
        share = max(1, room // max(1, len(self._queue)))
        for _ in range(min(room, len(self._queue))):
            request = self._queue.popleft()
            part = request.take(min(share, room))
            room -= len(part)
            parts.append((request, part))
            if request.left:
                self._queue.append(request)
        while room and self._queue:  # what the small ones left goes to the large ones
            request = self._queue[0]
            part = request.take(room)
            room -= len(part)
            parts.append((request, part))
            if not request.left:
                self._queue.popleft()
        return parts


def _hand_out(parts: Parts[Item, Answer], answers: list[Answer]) -> None:
    start = 0
    for request, part in parts:
        request.answers += answers[start : start + len(part)]
        start += len(part)
        if len(request.answers) == len(request.items) and not request.done.done():
            request.done.set_result(request.answers)
