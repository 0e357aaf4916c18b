"""Which training queries are held out for validation: decided by each query's uid alone, never by its place.

The uids are hashed and the smallest hashes are held out: round(fraction x N) of them, at most `largest`. With two or
more distinct uids at least one query is held out and at least one stays. Queries that share a uid stay together, so
a few less may be held out. Fraction 0 or `largest` 0 holds out nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .texts import text_hashes


def held_out(uids: Sequence[str], fraction: float, largest: int) -> NDArray[np.bool_]:
    """True for the queries that are held out."""
    hashes_Q = text_hashes(uids)
    wanted = min(round(fraction * len(hashes_Q)), largest)
    if fraction <= 0 or largest <= 0 or len(hashes_Q) < 2:
        return np.zeros(len(hashes_Q), dtype=np.bool_)
    wanted = min(max(wanted, 1), len(hashes_Q) - 1)
    val_Q = hashes_Q < np.partition(hashes_Q, wanted)[wanted]
    if not val_Q.any():  # many queries share the smallest uid
        val_Q = hashes_Q == hashes_Q.min()
    return val_Q if not val_Q.all() else np.zeros_like(val_Q)
