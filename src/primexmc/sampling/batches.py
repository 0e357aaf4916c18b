"""Which queries are trained together: similar ones (NGAME), and how the clusters grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import SamplingSettings
from ..errors import UserError
from ..own_code import own

Ints = NDArray[np.int64]


def ngame_batches(
    num_queries: int, batch_size: int, rng: np.random.Generator, *, cluster_of_N: NDArray[Any] | None = None
) -> list[Ints]:
    """Every query once: the clusters are shuffled, laid end to end and cut; without clusters, a random order.

    There are ceil(N / batch_size) batches whose sizes differ by one at most: never above `batch_size`, and no small
    rest at the end whose few labels would make easy negatives.
    """
    if cluster_of_N is None:
        order_N = rng.permutation(num_queries)
    else:
        if len(cluster_of_N) != num_queries:
            raise ValueError(f"{len(cluster_of_N)} cluster numbers for {num_queries} queries")
        turn_of_cluster = rng.permutation(int(cluster_of_N.max(initial=-1)) + 1)
        order_N = turn_of_cluster[cluster_of_N].argsort(kind="stable")
    num_batches = -(-num_queries // batch_size)
    cuts = np.arange(1, num_batches, dtype=np.int64) * num_queries // num_batches
    return np.split(order_N, cuts) if num_queries else []


def query_batches(
    settings: SamplingSettings,
    num_queries: int,
    batch_size: int,
    rng: np.random.Generator,
    cluster_of_N: NDArray[Any] | None,
) -> list[Ints]:
    """As `sampling.batches` says; one's own function is called like `ngame_batches` and makes as many batches."""
    if settings.batches == "random":
        return ngame_batches(num_queries, batch_size, rng)
    if settings.batches == "ngame":
        return ngame_batches(num_queries, batch_size, rng, cluster_of_N=cluster_of_N)
    batches: list[Ints] = own(settings.batches, "sampling.batches")(
        num_queries, batch_size, rng, cluster_of_N=cluster_of_N
    )
    wanted = -(-num_queries // batch_size)
    if len(batches) != wanted:
        raise UserError(
            f"sampling.batches: {settings.batches} made {len(batches)} batches; the schedule counts on {wanted}."
        )
    return [np.asarray(batch, dtype=np.int64) for batch in batches]


def cluster_size(progress: float, settings: SamplingSettings) -> int:
    """The size after this share of training: it starts at the smallest and doubles at each growth share."""
    doublings: int = sum(progress >= share - 1e-9 for share in settings.growth)
    return min(settings.smallest_cluster << doublings, settings.largest_cluster)
