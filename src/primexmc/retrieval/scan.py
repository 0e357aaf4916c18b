"""A plain scan: inner products with every label, in blocks, with a running top-k. For any device and any size.

Shapes: B queries, L labels, D dimensions, K results a query; C labels in a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .filtered import Filtered

LABELS_PER_BLOCK = {"cpu": 16_384, "cuda": 131_072}  # 64 MB and 512 MB of fp32 scores with 1,024 queries


def scan(
    h_BD: Tensor, z_LD: Tensor, top: int, filtered: Filtered, labels_per_block: int | None = None
) -> tuple[Tensor, Tensor]:
    """Ids and scores (fp32) of the `top` <= L best labels, equal scores by rising id; -1 where there are no more.

    The product is made in the queries' type: GPUs multiply half precision as it is and add up in fp32.
    """
    size = labels_per_block or LABELS_PER_BLOCK.get(z_LD.device.type, 16_384)
    ids_BK = torch.empty((len(h_BD), 0), dtype=torch.int64, device=h_BD.device)
    scores_BK = torch.empty((len(h_BD), 0), dtype=torch.float32, device=h_BD.device)
    for start in range(0, len(z_LD), size):
        s_BC = product(h_BD, z_LD[start : start + size].to(h_BD.dtype))
        filtered.cross_out(s_BC, start)
        new_ids_BK, new_scores_BK = _top(s_BC, min(top, s_BC.shape[1]))
        # What is found first has the lower ids, so a stable sort keeps ties in the order of ids.
        ids_BK = torch.cat([ids_BK, new_ids_BK + start], dim=1)
        scores_BK, order_BK = torch.cat([scores_BK, new_scores_BK], dim=1).sort(dim=1, descending=True, stable=True)
        ids_BK, scores_BK = ids_BK.gather(1, order_BK)[:, :top], scores_BK[:, :top]
    return ids_BK.masked_fill(scores_BK.isneginf(), -1), scores_BK


def product(h_BD: Tensor, z_CD: Tensor) -> Tensor:
    """All scores, fp32."""
    if h_BD.dtype == torch.float32:
        return h_BD @ z_CD.T
    try:  # fp32 scores from half precision: rounding them back would make ties of near labels
        return torch.mm(h_BD, z_CD.T, out_dtype=torch.float32)
    except (TypeError, NotImplementedError, RuntimeError):
        return (h_BD @ z_CD.T).float()


def _top(s_BC: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """The best columns of each row by falling score, equal scores by rising column."""
    if top >= s_BC.shape[1]:
        scores_BK, ids_BK = s_BC.sort(dim=1, descending=True, stable=True)
        return ids_BK, scores_BK
    values_BK, columns_BK = s_BC.topk(top + 1, dim=1)
    tied_B = values_BK[:, top] == values_BK[:, top - 1]  # topk may have taken any of the tied
    ids_BK = columns_BK[:, :top]
    if bool(tied_B.any()):  # waits for the GPU
        ids_BK[tied_B] = _lowest_of_tied(s_BC[tied_B], values_BK[tied_B, top - 1 : top], top)
    ids_BK = ids_BK.sort(dim=1).values
    scores_BK, order_BK = s_BC.gather(1, ids_BK).sort(dim=1, descending=True, stable=True)
    return ids_BK.gather(1, order_BK), scores_BK


def _lowest_of_tied(s_BC: Tensor, last_B1: Tensor, top: int) -> Tensor:
    """The columns above the last value, filled up with the lowest of those that equal it: exactly `top` a row."""
    above_BC, equal_BC = s_BC > last_B1, s_BC == last_B1
    missing_B1 = top - above_BC.sum(dim=1, keepdim=True)
    chosen_BC = above_BC | (equal_BC & (equal_BC.cumsum(dim=1) <= missing_B1))
    return chosen_BC.nonzero()[:, 1].view(-1, top)
