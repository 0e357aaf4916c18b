"""Which short form multiplies quickest on this CPU. All give the same answers, so measuring is safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache

import torch

from .codes import Codes, Precision

LABELS, QUERIES, TRIALS = 4096, 32, 7
CLEARLY = 0.8  # a short form must take less than this share of the time: candidates cost something, too


@lru_cache
def quickest_precision(dim: int) -> Precision:
    """Measured once for each width, in some milliseconds: int8 wants VNNI, bf16 AVX512-BF16 or AMX. All take turns, so
    that other programs disturb them alike. Of the two, int8 reads half the bytes, which is what one query costs."""
    takers = {precision: _taker(dim, precision) for precision in ("fp32", "bf16", "int8")}
    tries = [{precision: _seconds(taker) for precision, taker in takers.items()} for _ in range(TRIALS + 1)]
    seconds = {precision: min(turn[precision] for turn in tries[1:]) for precision in takers}
    best: Precision = "bf16" if seconds["bf16"] < CLEARLY * seconds["int8"] else "int8"
    return best if seconds[best] < CLEARLY * seconds["fp32"] else "fp32"


def _taker(dim: int, precision: Precision) -> Callable[[], None]:
    generator = torch.Generator().manual_seed(0)
    codes = Codes.of(torch.randn(LABELS, dim, generator=generator), precision)
    queries = codes.of_queries(torch.randn(QUERIES, dim, generator=generator))
    products = torch.empty(QUERIES, LABELS, dtype=codes.product_type)
    return lambda: codes.products(queries, 0, products)


def _seconds(taker: Callable[[], None]) -> float:
    started = time.perf_counter()
    try:
        taker()
    except RuntimeError:  # this torch cannot multiply it here
        return float("inf")
    return time.perf_counter() - started
