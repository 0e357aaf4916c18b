"""Recall of an engine: the share of the truly best labels that it finds, and the least effort that gives enough.

The effort is chosen on one half of the queries and the recall that is told comes from the other.

Shapes: N queries, L labels, D dimensions, K results a query.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from .engine import Engine
from .exact import ExactIndex

AT = 100
NOISE = 1.0  # length of the noise beside a label's vector of length 1: a query lies at about 45 degrees from it


@dataclass(frozen=True)
class Recall:
    """What was measured when an index was built."""

    recall: float
    at: int
    num_queries: int
    effort: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def tune(engine: Engine, z_LD: torch.Tensor, queries_ND: torch.Tensor, wanted: float) -> Recall:
    """Sets the engine to the least effort that reaches the recall wanted, or else to the greatest."""
    at = max(1, min(AT, len(z_LD) // 4))
    truth_NK, last_N = _truth(z_LD, queries_ND, at)
    half = (len(queries_ND) + 1) // 2
    choosing, judging = slice(0, half), slice(half if len(queries_ND) > 1 else 0, None)
    z_numpy, h_numpy = z_LD.numpy(), queries_ND.numpy()

    def recall(part: slice) -> float:
        width = int(np.ceil(at * (1 + engine.surplus)))
        found_NW = engine.search(h_numpy[part], width)
        return recall_of(found_NW, truth_NK[part], last_N[part], h_numpy[part], z_numpy)

    for effort in engine.efforts():
        engine.effort = effort
        if recall(choosing) >= wanted:
            break
    return Recall(round(recall(judging), 4), at, len(queries_ND[judging]), engine.effort)


def recall_of(
    found_NW: NDArray[np.int64],
    truth_NK: NDArray[np.int64],
    last_N: NDArray[np.float32],
    h_ND: NDArray[np.float32],
    z_LD: NDArray[np.float32],
) -> float:
    """Finds that are among the best or tied with the last of them; keys are rows in a new index."""
    hits = 0
    for found, truth, last, query in zip(found_NW, truth_NK, last_N, h_ND, strict=True):
        real = found[found >= 0]
        good = np.isin(real, truth)
        good[~good] = z_LD[real[~good]] @ query >= last - 1e-6
        hits += min(int(good.sum()), len(truth))
    return hits / max(1, truth_NK.size)


def made_up_queries(z_LD: torch.Tensor, count: int, seed: int = 0) -> torch.Tensor:
    """Labels' vectors with noise, for models that remember no queries."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(z_LD), generator=generator)[:count]
    near_ND = functional.normalize(z_LD[rows].float().cpu(), dim=1)
    noise_ND = functional.normalize(torch.randn(near_ND.shape, generator=generator), dim=1)
    return functional.normalize(near_ND + NOISE * noise_ND, dim=1)


def _truth(z_LD: torch.Tensor, queries_ND: torch.Tensor, at: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    ids_NK, scores_NK = ExactIndex(z_LD).search(queries_ND, at)
    return ids_NK, scores_NK[:, -1]
