"""The batcher with a model that answers when it is told: order, fairness, bounds."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from primexmc.serving.batcher import Batcher
from primexmc.serving.limits import Limits
from primexmc.serving.refusal import Refusal


class Model:
    """Doubles numbers, a batch whenever `go` is set; remembers the batches."""

    def __init__(self):
        self.go, self.batches, self.begun = threading.Event(), [], threading.Event()
        self.go.set()

    def __call__(self, items):
        self.batches.append(list(items))
        self.begun.set()
        assert self.go.wait(10)
        if "poison" in items:
            raise RuntimeError("poison")
        return [2 * item for item in items]


@contextlib.asynccontextmanager
async def running(model, **limits):
    batcher = Batcher(model, Limits(**limits))
    task = asyncio.create_task(batcher.run())
    try:
        yield batcher
    finally:
        model.go.set()
        task.cancel()
        batcher.close()


async def busy(batcher, model):
    """One request is at the model, which waits."""
    model.go.clear()
    first = asyncio.create_task(batcher.submit([0]))
    while not model.begun.is_set():
        await asyncio.sleep(0.001)
    return first


async def submitted(batcher, *requests):
    tasks = [asyncio.create_task(batcher.submit(items)) for items in requests]
    await asyncio.sleep(0.01)
    return tasks


def test_answers_belong_to_their_items():
    async def main():
        async with running(Model(), batch_texts=7, waiting_requests=100) as batcher:
            requests = [list(range(start, start + size)) for start, size in enumerate([1, 5, 30, 1, 8, 7])]
            answers = await asyncio.gather(*(batcher.submit(items) for items in requests))
            assert answers == [[2 * item for item in items] for items in requests]
            assert await batcher.submit([]) == []

    asyncio.run(main())


def test_what_waits_together_is_answered_together():
    async def main():
        model = Model()
        async with running(model, batch_texts=8) as batcher:
            first = await busy(batcher, model)
            tasks = await submitted(batcher, [1], [2, 3], [4])
            model.go.set()
            await asyncio.gather(first, *tasks)
            assert model.batches == [[0], [1, 2, 3, 4]]

    asyncio.run(main())


def test_a_large_request_holds_up_nobody():
    async def main():
        model = Model()
        async with running(model, batch_texts=8) as batcher:
            first = await busy(batcher, model)
            large, *small = await submitted(batcher, list(range(100, 200)), [1], [2], [3])
            model.go.set()
            await asyncio.gather(first, large, *small)
            assert {1, 2, 3} <= set(model.batches[1]), "the small ones are in the next batch"
            assert sum(item >= 100 for item in model.batches[1]) == 5, "and the large one has what they leave"
            assert all(len(batch) <= 8 for batch in model.batches)
            assert await large == [2 * item for item in range(100, 200)]

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 3])
def test_past_the_bound_of_requests_it_is_429_at_once(size):
    async def main():
        model = Model()
        async with running(model, batch_texts=8, waiting_requests=2) as batcher:
            first = await busy(batcher, model)
            tasks = await submitted(batcher, [1], [2])
            with pytest.raises(Refusal) as refusal:
                await asyncio.wait_for(batcher.submit([7] * size), 1)
            assert refusal.value.status == 429 and int(refusal.value.headers["Retry-After"]) >= 1
            assert len(model.batches) == 1, "the model is still at the first"
            model.go.set()
            assert await asyncio.gather(first, *tasks) == [[0], [2], [4]]
            assert await batcher.submit([7] * size) == [14] * size, "there is room again"

    asyncio.run(main())


def test_past_the_bound_of_texts_too_but_alone_any_request_fits():
    async def main():
        model = Model()
        async with running(model, batch_texts=4, waiting_texts=10) as batcher:
            assert len(await batcher.submit(list(range(50)))) == 50
            model.begun.clear()
            first = await busy(batcher, model)
            (waiting,) = await submitted(batcher, [1] * 8)
            with pytest.raises(Refusal):
                await batcher.submit([2] * 3)
            (small,) = await submitted(batcher, [2] * 2)
            model.go.set()
            await asyncio.gather(first, waiting, small)

    asyncio.run(main())


def test_who_breaks_a_batch_breaks_it_alone():
    async def main():
        model = Model()
        async with running(model) as batcher:
            first = await busy(batcher, model)
            good, bad, other = await submitted(batcher, [1], ["poison"], [3])
            model.go.set()
            await first
            assert (await good, await other) == ([2], [6])
            with pytest.raises(RuntimeError):
                await bad
            assert await batcher.submit([5]) == [10]

    asyncio.run(main())


def test_who_no_longer_waits_is_not_worked_for():
    async def main():
        model = Model()
        async with running(model) as batcher:
            first = await busy(batcher, model)
            gone, stays = await submitted(batcher, [1], [2])
            gone.cancel()
            await asyncio.sleep(0.01)
            assert batcher.waiting_requests == 1
            model.go.set()
            assert await asyncio.gather(first, stays) == [[0], [4]]
            assert model.batches == [[0], [2]]

    asyncio.run(main())
