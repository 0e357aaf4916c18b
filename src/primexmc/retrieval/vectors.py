"""Vectors that come in from outside, checked; and without some of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError

ROWS = 65_536  # looked at at once


def checked_vectors(x_ND: Tensor, dim: int | None = None) -> Tensor:
    """The same vectors without gradients, or a sentence on what is wrong with them."""
    if x_ND.ndim != 2 or (dim is not None and x_ND.shape[1] != dim):
        wanted = "vectors" if dim is None else f"vectors of {dim} dimensions"
        raise UserError(f"expected a table of {wanted}, one a row, not one of shape {tuple(x_ND.shape)}.")
    if not x_ND.is_floating_point():
        raise UserError(f"expected vectors of floating-point numbers, not {x_ND.dtype}.")
    for start in range(0, len(x_ND), ROWS):
        # One sum a row costs a fraction of a look at every number: NaN and infinity survive it.
        finite_N = x_ND[start : start + ROWS].float().sum(dim=1).isfinite()
        if not bool(finite_N.all()):
            row = start + int((~finite_N).nonzero()[0])
            raise UserError(f"vector {row} holds NaN or infinity and cannot be searched.")
    return x_ND.detach()


def without_rows(x_ND: Tensor, rows: Any) -> Tensor:
    """What is left, in order."""
    return x_ND[torch.from_numpy(kept_rows(len(x_ND), rows)).to(x_ND.device)]


def kept_rows(size: int, rows: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The ids that stay when some go."""
    gone = np.atleast_1d(np.asarray(rows, dtype=np.int64))
    if len(gone) and (gone.min() < 0 or gone.max() >= size):
        wrong = gone[(gone < 0) | (gone >= size)][0]
        raise UserError(f"there is no label {wrong} to remove: ids are 0 to {size - 1}.")
    stays = np.ones(size, dtype=np.bool_)
    stays[gone] = False
    return np.flatnonzero(stays).astype(np.int64)


def same_rows(old_LD: Tensor, new_ND: Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each new row the old row with the same numbers, each at most once; -1 where there is none."""
    old_L, new_N = _named(old_LD), _named(new_ND)
    order = np.argsort(old_L)
    if not len(order):
        return np.full(len(new_N), -1, dtype=np.int64)
    place_N = order[np.searchsorted(old_L, new_N, sorter=order).clip(max=len(order) - 1)]
    return np.where(old_L[place_N] == new_N, place_N, -1).astype(np.int64)


def _named(x_ND: Tensor) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """64 random-looking bits of each row's bytes and of how many equal rows lie before it."""
    factors_D = np.random.default_rng(0).integers(1, 2**63, x_ND.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    bits_ND = x_ND.float().contiguous().numpy().view(np.uint32)
    blocks = [
        (bits_ND[start : start + ROWS].astype(np.uint64) * factors_D).sum(axis=1, dtype=np.uint64)
        for start in range(0, len(bits_ND), ROWS)
    ]
    names_N = np.concatenate([np.zeros(0, np.uint64), *blocks])
    order = np.argsort(names_N, kind="stable")
    ordered = names_N[order]
    before_N = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    names_N[order] += before_N.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return names_N
