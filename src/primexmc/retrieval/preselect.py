"""Exact search by way of short codes, on the CPU: a quick product with every label says which few can be among the
best, and only those are scored in fp32. What comes out is what a full fp32 search finds, by proof and not by luck.

Labels are looked at in groups of 32 neighbours: a label that reaches a cut makes its group's best reach it. The K best
groups hold at least K labels that reach the K-th best group's value (`probe`); their exact scores say what the K-th
best label reaches at least (`kth`), and a label that misses `kth` by more than the error of its code is out.

Shapes: B queries, L labels, D dimensions, K results a query; C labels in a block, in G groups of W;
M groups and N candidates of all queries.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch
from torch import Tensor

from .codes import GROUP, CodedQueries, Codes
from .filtered import Filtered, lowest

PRODUCTS_AT_ONCE = 2**22  # 16 MB of products: they stay in the last cache until they have been looked at
MOST_CANDIDATES = 1 / 16  # of all pairs; where more are this near to each other a plain scan is quicker


def preselect(h_BD: Tensor, z_LD: Tensor, codes: Codes, top: int, filtered: Filtered) -> tuple[Tensor, Tensor] | None:
    """Ids and scores of the `top` best labels, equal scores by rising id; None where the codes tell too little."""
    search = _Search(h_BD, z_LD, codes.of_queries(h_BD), top)
    width = max(GROUP * top, PRODUCTS_AT_ONCE // len(h_BD)) // GROUP * GROUP
    num_codes = len(codes.codes_LD)
    buffer = torch.empty(len(h_BD) * min(width, num_codes), dtype=codes.product_type)
    for start in range(0, num_codes, width):
        stop = min(start + width, num_codes)
        products_BC = buffer[: len(h_BD) * (stop - start)].view(len(h_BD), stop - start)
        codes.products(search.queries, start, products_BC)
        filtered.cross_out(products_BC, start)
        products_BC[:, len(z_LD) - start :] = lowest(products_BC.dtype)  # the last group may hold fewer labels
        if not search.look_at(products_BC, start):
            return None
    return search.result()


class _Search:
    """What has been found so far."""

    def __init__(self, h_BD: Tensor, z_LD: Tensor, queries: CodedQueries, top: int) -> None:
        self.h_BD, self.z_LD, self.queries, self.top = h_BD, z_LD, queries, top
        self.best_BK = torch.full((len(h_BD), top), -torch.inf)  # exact scores, in no order
        self.found: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, labels and exact scores of candidates

    @property
    def kth_B1(self) -> Tensor:
        return self.best_BK.amin(dim=1, keepdim=True)

    def look_at(self, products_BC: Tensor, start: int) -> bool:
        """Candidates of one block: first those that must lift the K-th best score, then all that may still pass it."""
        products_BGW = products_BC.view(len(products_BC), -1, GROUP)
        groups_BG = products_BGW.amax(dim=2)
        if groups_BG.shape[1] >= self.top:
            probe_B1 = groups_BG.float().topk(self.top, dim=1, sorted=False).values.amin(dim=1, keepdim=True)
        else:
            probe_B1 = torch.full((len(groups_BG), 1), torch.inf)
        cut_B1 = self._as_products(torch.maximum(probe_B1, self._in_units(self.kth_B1)), products_BC.dtype)
        upper_B1 = torch.full_like(cut_B1, 2**30)
        for _ in range(2):
            if not self._score(products_BGW, groups_BG, cut_B1, upper_B1, start):
                return False
            upper_B1 = cut_B1
            cut_B1 = self._as_products(self._in_units(self.kth_B1 - self.queries.error_B1), products_BC.dtype)
            cut_B1 = torch.minimum(cut_B1, upper_B1)
        return True

    def _in_units(self, score_B1: Tensor) -> Tensor:
        """A score as a product; a little lower, for the division is rounded, too."""
        units_B1 = score_B1 / self.queries.unit_B1
        return units_B1 - units_B1.abs() * 2.0**-20

    def _as_products(self, cut_B1: Tensor, dtype: torch.dtype) -> Tensor:
        """A cut in the type that products are compared in, above all that is crossed out."""
        if dtype == torch.int32:
            return cut_B1.ceil().clamp(1 - 2**30, 2**30).to(torch.int32)
        return cut_B1.clamp_min(torch.finfo(torch.bfloat16).min)

    def _score(self, products_BGW: Tensor, groups_BG: Tensor, cut_B1: Tensor, upper_B1: Tensor, start: int) -> bool:
        """Exact scores of the labels with cut <= product < upper, added to what was found."""
        rows_N, columns_N = _between(products_BGW, groups_BG, cut_B1, upper_B1)
        if len(rows_N) > max(MOST_CANDIDATES * products_BGW.numel(), 4 * self.top * len(products_BGW)):
            return False
        labels_N = columns_N + start
        counts_B = torch.bincount(rows_N, minlength=len(self.h_BD))
        scores_N = exact_scores(self.h_BD, self.z_LD, counts_B, labels_N)
        self.found.append((rows_N, labels_N, scores_N))
        new_BW = _side_by_side(scores_N, rows_N, counts_B, -torch.inf)
        self.best_BK = torch.cat([self.best_BK, new_BW], dim=1).topk(self.top, dim=1, sorted=False).values
        return True

    def result(self) -> tuple[Tensor, Tensor]:
        """The best of all candidates, in order."""
        rows_N, labels_N, scores_N = (torch.cat(parts) for parts in zip(*self.found, strict=True))
        good_N = scores_N >= self.kth_B1[rows_N, 0]
        rows_N, labels_N, scores_N = rows_N[good_N], labels_N[good_N], scores_N[good_N]
        order_N = labels_N.argsort()
        order_N = order_N[rows_N[order_N].argsort(stable=True)]
        rows_N, labels_N, scores_N = rows_N[order_N], labels_N[order_N], scores_N[order_N]
        counts_B = torch.bincount(rows_N, minlength=len(self.h_BD))
        scores_BW = _side_by_side(scores_N, rows_N, counts_B, -torch.inf)
        ids_BW = _side_by_side(labels_N, rows_N, counts_B, -1)
        scores_BW, order_BW = scores_BW.sort(dim=1, descending=True, stable=True)
        return ids_BW.gather(1, order_BW)[:, : self.top], scores_BW[:, : self.top]


def exact_scores(h_BD: Tensor, z_LD: Tensor, counts_B: Tensor, labels_N: Tensor) -> Tensor:
    """fp32 inner products of query 0 with the first counts[0] labels, and so on; each pair's is made alone, so that it
    does not depend on what else is asked."""
    ends_R = torch.cat([counts_B.new_zeros(1), counts_B.cumsum(0)])
    size = (len(h_BD), len(z_LD))
    _hear_the_warning()
    pattern = torch.sparse_csr_tensor(ends_R, labels_N, torch.zeros(len(labels_N)), size, check_invariants=False)
    scores_N: Tensor = torch.sparse.sampled_addmm(pattern, h_BD, z_LD.T, beta=0.0).values()
    return scores_N


@lru_cache
def _hear_the_warning() -> None:
    """torch says once that its csr tensors are in beta, some versions also that they are not checked; nobody needs to
    know."""
    zero, one = torch.zeros(1), torch.ones(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = torch.sparse_csr_tensor(torch.tensor([0, 1]), zero.long(), zero, (1, 1), check_invariants=False)
        torch.sparse.sampled_addmm(pattern, one, one, beta=0.0)


def _between(products_BGW: Tensor, groups_BG: Tensor, cut_B1: Tensor, upper_B1: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of the products with cut <= product < upper, in order."""
    which_M = (groups_BG >= cut_B1).view(-1).nonzero().squeeze(1)
    rows_M = which_M // groups_BG.shape[1]
    near_MW = products_BGW.view(-1, GROUP).index_select(0, which_M)
    inside_MW = (near_MW >= cut_B1[rows_M]) & (near_MW < upper_B1[rows_M])
    found_N = inside_MW.view(-1).nonzero().squeeze(1)
    group_N = found_N // GROUP
    rows_N = rows_M[group_N]
    return rows_N, which_M[group_N] % groups_BG.shape[1] * GROUP + found_N % GROUP


def _side_by_side(values_N: Tensor, rows_N: Tensor, counts_B: Tensor, empty: float) -> Tensor:
    """Values that lie row after row, as a table with one line a row."""
    firsts_B = counts_B.cumsum(0) - counts_B
    places_N = torch.arange(len(rows_N)) - firsts_B[rows_N]
    table_BW = torch.full((len(counts_B), int(counts_B.max())), empty, dtype=values_N.dtype)
    table_BW[rows_N, places_N] = values_N
    return table_BW
