"""Exact search: inner products with every label, in blocks, with a running top-k.

Shapes: Q queries, L labels, D dimensions, K results a query; B queries and C labels in a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

QUERIES_PER_BLOCK = 1024
LABELS_PER_BLOCK = {"cpu": 16_384, "cuda": 131_072}  # 64 MB and 512 MB of fp32 scores with as many queries


class ExactIndex:
    """All labels' vectors, searched exactly where they lie (CPU or GPU, fp32 or half precision; scores are fp32).

    Equal scores come in the order of the label ids, lower first. Two labels with the same vector may still differ in
    the last bit, because a matrix product need not add up in the same order at every place of a block.
    """

    def __init__(self, z_LD: torch.Tensor, *, labels_per_block: int | None = None) -> None:
        assert z_LD.ndim == 2, "label vectors are labels x dimensions"
        self.z_LD = z_LD.detach()
        self.labels_per_block = labels_per_block or LABELS_PER_BLOCK.get(z_LD.device.type, 16_384)

    def __len__(self) -> int:
        return len(self.z_LD)

    @torch.inference_mode()
    def search(
        self, h_QD: NDArray[np.float32] | torch.Tensor, top: int, filtered: Any | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids and scores of the `top` labels of every query, best first; -1 and -inf where there are no more.

        `filtered` (queries x labels, csr) holds pairs that never come back.
        """
        h_QD = torch.as_tensor(h_QD)
        assert top >= 1 and h_QD.ndim == 2 and h_QD.shape[1] == self.z_LD.shape[1], (top, h_QD.shape, self.z_LD.shape)
        pairs = None if filtered is None else csr_matrix(filtered)
        assert pairs is None or pairs.shape == (len(h_QD), len(self)), "the filter is queries x labels"
        ids_QK = np.full((len(h_QD), top), -1, dtype=np.int64)
        scores_QK = np.full((len(h_QD), top), -np.inf, dtype=np.float32)
        for start in range(0, len(h_QD), QUERIES_PER_BLOCK):
            rows = slice(start, start + QUERIES_PER_BLOCK)
            h_BD = h_QD[rows].to(self.z_LD.device, self._product_type())
            ids_BK, scores_BK = self._search_block(h_BD, min(top, len(self)), None if pairs is None else pairs[rows])
            ids_QK[rows, : ids_BK.shape[1]] = ids_BK.cpu().numpy()
            scores_QK[rows, : ids_BK.shape[1]] = scores_BK.cpu().numpy()
        return ids_QK, scores_QK

    def _product_type(self) -> torch.dtype:
        """GPUs multiply half precision as it is (and add up in fp32); on the CPU it is widened block by block."""
        return self.z_LD.dtype if self.z_LD.device.type == "cuda" else torch.float32

    def _search_block(
        self, h_BD: torch.Tensor, top: int, pairs: csr_matrix | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ids_BK = torch.empty((len(h_BD), 0), dtype=torch.int64, device=h_BD.device)
        scores_BK = torch.empty((len(h_BD), 0), dtype=torch.float32, device=h_BD.device)
        filtered = _Filter(pairs)
        for start in range(0, len(self), self.labels_per_block):
            z_CD = self.z_LD[start : start + self.labels_per_block].to(h_BD.dtype)
            s_BC = filtered.apply(_product(h_BD, z_CD), start)
            new_ids_BK, new_scores_BK = _top(s_BC, top)
            # What is found first has the lower ids, so a stable sort keeps ties in the order of ids.
            ids_BK = torch.cat([ids_BK, new_ids_BK + start], dim=1)
            scores_BK, order_BK = torch.cat([scores_BK, new_scores_BK], dim=1).sort(dim=1, descending=True, stable=True)
            ids_BK, scores_BK = ids_BK.gather(1, order_BK)[:, :top], scores_BK[:, :top]
        return ids_BK.masked_fill(scores_BK.isneginf(), -1), scores_BK


class _Filter:
    """The filtered pairs of one block of queries, label block by label block."""

    def __init__(self, pairs: csr_matrix | None) -> None:
        self.empty = pairs is None or pairs.nnz == 0
        if pairs is not None:
            kept = pairs.data != 0
            self.rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))[kept]
            self.labels = pairs.indices[kept]

    def apply(self, s_BC: torch.Tensor, start: int) -> torch.Tensor:
        if not self.empty:
            inside = (self.labels >= start) & (self.labels < start + s_BC.shape[1])
            rows = torch.from_numpy(self.rows[inside]).long().to(s_BC.device)
            columns = torch.from_numpy(self.labels[inside] - start).long().to(s_BC.device)
            s_BC[rows, columns] = -torch.inf
        return s_BC


def _product(h_BD: torch.Tensor, z_CD: torch.Tensor) -> torch.Tensor:
    if h_BD.dtype == torch.float32:
        return h_BD @ z_CD.T
    try:  # fp32 scores from half precision: rounding them back would make ties of near labels
        return torch.mm(h_BD, z_CD.T, out_dtype=torch.float32)
    except (TypeError, NotImplementedError, RuntimeError):
        return (h_BD @ z_CD.T).float()


def _top(s_BC: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
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


def _lowest_of_tied(s_BC: torch.Tensor, last_B1: torch.Tensor, top: int) -> torch.Tensor:
    """The columns above the last value, filled up with the lowest of those that equal it: exactly `top` a row."""
    above_BC, equal_BC = s_BC > last_B1, s_BC == last_B1
    missing_B1 = top - above_BC.sum(dim=1, keepdim=True)
    chosen_BC = above_BC | (equal_BC & (equal_BC.cumsum(dim=1) <= missing_B1))
    return chosen_BC.nonzero()[:, 1].view(-1, top)
