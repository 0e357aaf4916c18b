"""Which short form multiplies quickest on this CPU. All give the same answers, so measuring is safe."""

from __future__ import annotations

import time
from functools import lru_cache

import torch

from .codes import Codes, Precision

LABELS, QUERIES, TRIALS = 4096, 32, 3
CLEARLY = 0.8  # a short form must take less than this share of the time: candidates cost something, too


@lru_cache
def quickest_precision(dim: int) -> Precision:
    """Measured once for each width, in some milliseconds: int8 wants VNNI, bf16 AVX512-BF16 or AMX."""
    seconds = {precision: _seconds(dim, precision) for precision in ("fp32", "bf16", "int8")}
    best: Precision = min(("int8", "bf16"), key=lambda precision: seconds[precision])
    return best if seconds[best] < CLEARLY * seconds["fp32"] else "fp32"


def _seconds(dim: int, precision: Precision) -> float:
    generator = torch.Generator().manual_seed(0)
    codes = Codes.of(torch.randn(LABELS, dim, generator=generator), precision)
    queries = codes.of_queries(torch.randn(QUERIES, dim, generator=generator))
    products = torch.empty(QUERIES, LABELS, dtype=codes.product_type)
    tries = []
    try:
        for _ in range(TRIALS + 1):
            started = time.perf_counter()
            codes.products(queries, 0, products)
            tries.append(time.perf_counter() - started)
    except RuntimeError:  # this torch cannot multiply it here
        return float("inf")
    return min(tries[1:])
