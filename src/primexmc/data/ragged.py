"""Rows of different lengths in one flat array: row i is `flat[offsets[i]:offsets[i + 1]]`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ragged_take(
    flat: NDArray[Any], offsets: NDArray[np.int64], rows: NDArray[np.integer[Any]]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The flat values and offsets of these rows, in this order; no loop over rows."""
    starts = offsets[rows]
    lengths = offsets[np.asarray(rows) + 1] - starts
    taken = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=taken[1:])
    positions = np.repeat(starts - taken[:-1], lengths)
    positions += np.arange(taken[-1])
    return flat[positions], taken
