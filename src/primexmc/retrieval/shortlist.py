"""Exact search by way of half precision, on the GPU: a shortlist somewhat longer than what is asked for, scored in
fp32, and a proof that nothing outside of it can belong to the best.

Shapes: B queries, L labels, D dimensions, K results a query, W entries of a shortlist; C labels of a block, G groups.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .codes import GROUP, Codes
from .filtered import Filtered
from .scan import product

QUERIES_AT_ONCE = 256  # 256 x 228 x 768 fp32 vectors are 180 MB
CELLS_AT_ONCE = 2**27  # 512 MB of rough scores


def shortlist(h_BD: Tensor, z_LD: Tensor, codes: Codes, top: int, filtered: Filtered) -> tuple[Tensor, Tensor] | None:
    """Ids and scores of the `top` best labels, equal scores by rising id; None where the proof does not hold."""
    width = min(len(z_LD), 2 * top + 28)
    queries = codes.of_queries(h_BD)
    ids_BW, rough_BW = _rough(queries.codes_BD, codes.codes_LD, len(z_LD), width, filtered)
    ids_BW = ids_BW.sort(dim=1).values  # a stable sort by score then leaves ties by rising id
    scores_BW = _exact_scores(h_BD, z_LD, ids_BW.clamp_min(0)).masked_fill(ids_BW < 0, -torch.inf)
    scores_BW, order_BW = scores_BW.sort(dim=1, descending=True, stable=True)
    # A label outside has at most the last rough score; with the error it must stay below the last that is returned.
    last_B = rough_BW.amin(dim=1)
    proven = (last_B + queries.error_B1[:, 0] < scores_BW[:, top - 1]) | last_B.isneginf()
    if width < len(z_LD) and not bool(proven.all()):  # waits for the GPU
        return None
    return ids_BW.gather(1, order_BW)[:, :top], scores_BW[:, :top]


def _rough(codes_BD: Tensor, codes_LD: Tensor, L: int, width: int, filtered: Filtered) -> tuple[Tensor, Tensor]:
    """Ids and rough scores of the `width` labels with the largest products, in no order; -1 where there are no more."""
    size = max(GROUP, CELLS_AT_ONCE // max(1, len(codes_BD)) // GROUP * GROUP)
    found: list[tuple[Tensor, Tensor]] = []
    for start in range(0, len(codes_LD), size):
        s_BC = product(codes_BD, codes_LD[start : start + size])
        filtered.cross_out(s_BC, start)
        s_BC[:, max(0, L - start) :] = -torch.inf  # the last group may hold fewer labels
        places_BW, scores_BW = _best(s_BC, min(width, s_BC.shape[1]))
        found.append((places_BW + start, scores_BW))
    ids_BX, scores_BX = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
    scores_BW, order_BW = scores_BX.topk(width, dim=1, sorted=False)
    return ids_BX.gather(1, order_BW).masked_fill(scores_BW.isneginf(), -1), scores_BW


def _best(s_BC: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` best columns of each row. They lie in the `width` groups whose best are the best: two short
    selections in place of one over all columns."""
    if s_BC.shape[1] <= 2 * GROUP * width:
        scores_BW, places_BW = s_BC.topk(width, dim=1, sorted=False)
        return places_BW, scores_BW
    s_BGg = s_BC.view(len(s_BC), -1, GROUP)
    groups_BW = s_BGg.amax(dim=2).topk(width, dim=1, sorted=False).indices
    near_BX = s_BGg.gather(1, groups_BW[:, :, None].expand(-1, -1, GROUP)).flatten(1)
    scores_BW, order_BW = near_BX.topk(width, dim=1, sorted=False)
    return groups_BW.gather(1, order_BW // GROUP) * GROUP + order_BW % GROUP, scores_BW


def _exact_scores(h_BD: Tensor, z_LD: Tensor, ids_BW: Tensor) -> Tensor:
    blocks = [
        torch.bmm(z_LD[ids_BW[start : start + QUERIES_AT_ONCE]], h_BD[start : start + QUERIES_AT_ONCE, :, None])
        for start in range(0, len(h_BD), QUERIES_AT_ONCE)
    ]
    return torch.cat(blocks).squeeze(2)
