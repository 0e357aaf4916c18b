"""Exact search by way of half precision, on the GPU: a shortlist somewhat longer than what is asked for, scored in
fp32, and a proof that nothing outside of it can belong to the best.

Shapes: B queries, L labels, D dimensions, K results a query, W entries of a shortlist.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .codes import Codes
from .filtered import Filtered
from .scan import scan

QUERIES_AT_ONCE = 256  # 256 x 228 x 768 fp32 vectors are 180 MB


def shortlist(h_BD: Tensor, z_LD: Tensor, codes: Codes, top: int, filtered: Filtered) -> tuple[Tensor, Tensor] | None:
    """Ids and scores of the `top` best labels, equal scores by rising id; None where the proof does not hold."""
    width = min(len(z_LD), 2 * top + 28)
    queries = codes.of_queries(h_BD)
    ids_BW, rough_BW = scan(queries.codes_BD, codes.codes_LD[: len(z_LD)], width, filtered)
    ids_BW = ids_BW.sort(dim=1).values  # a stable sort by score then leaves ties by rising id
    scores_BW = _exact_scores(h_BD, z_LD, ids_BW.clamp_min(0)).masked_fill(ids_BW < 0, -torch.inf)
    scores_BW, order_BW = scores_BW.sort(dim=1, descending=True, stable=True)
    # A label outside has at most the last rough score; with the error it must stay below the last that is returned.
    proven = (rough_BW[:, -1] + queries.error_B1[:, 0] < scores_BW[:, top - 1]) | rough_BW[:, -1].isneginf()
    if width < len(z_LD) and not bool(proven.all()):  # waits for the GPU
        return None
    return ids_BW.gather(1, order_BW)[:, :top], scores_BW[:, :top]


def _exact_scores(h_BD: Tensor, z_LD: Tensor, ids_BW: Tensor) -> Tensor:
    blocks = [
        torch.bmm(z_LD[ids_BW[start : start + QUERIES_AT_ONCE]], h_BD[start : start + QUERIES_AT_ONCE, :, None])
        for start in range(0, len(h_BD), QUERIES_AT_ONCE)
    ]
    return torch.cat(blocks).squeeze(2)
