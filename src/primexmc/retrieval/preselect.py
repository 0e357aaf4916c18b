"""Exact search by way of short codes, on the CPU: a quick product with every label says which few can be among the
best, and only those are scored in fp32. What comes out is what a full fp32 search finds, by proof and not by luck.

Labels are looked at in groups of 32 neighbours. The K best groups hold at least K labels whose products reach the K-th
best group's, the cut. A product errs by at most `error`, so the K-th best label scores at least cut - error, and no
label among the best has a product below cut - 2 error: labels above that are collected, block by block, while the cut
rises. Then those that reach the cut are scored exactly, and of the others those that may pass the K-th of these scores.

Shapes: B queries, L labels, D dimensions, K results a query; C labels in a block, in G groups of W;
M groups and N candidates of all queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .best_first import best_first
from .codes import GROUP, CodedQueries, Codes
from .filtered import Filtered, lowest

PRODUCTS_AT_ONCE = 2**20  # 4 MB of products: they stay in the last cache until they have been looked at
MOST_CANDIDATES = 1 / 16  # of all pairs; where more are this near to each other a plain scan is quicker
FEW_QUERIES = 4
LOWEST = -(2.0**127)  # and below it only what is crossed out; for whole numbers -(2**30)
ROUNDED = 2.0**-20  # more than what a few fp32 operations lose

Array = NDArray[Any]


class Candidates(NamedTuple):
    """Labels that may be among the best, and the products that say so, by rising rows (queries)."""

    rows_N: NDArray[np.int32]
    labels_N: NDArray[np.int32]
    products_N: Array
    cut_B: Array


def preselect(h_BD: Tensor, z_LD: Tensor, codes: Codes, top: int, filtered: Filtered) -> tuple[Tensor, Tensor] | None:
    """Ids and scores of the `top` best labels, equal scores by rising id; None where the codes tell too little."""
    queries = codes.of_queries(h_BD)
    candidates = _collect(queries, codes, len(z_LD), top, filtered)
    return None if candidates is None else _judge(h_BD, z_LD, queries, top, candidates)


def _collect(queries: CodedQueries, codes: Codes, num_labels: int, top: int, filtered: Filtered) -> Candidates | None:
    """All labels whose products come within two errors of the cut."""
    error_B, unit_B = (column_B1[:, 0].numpy() for column_B1 in (queries.error_B1, queries.unit_B1))
    margin_B, best_BK = 2 * error_B / unit_B, None
    found = []
    for start, products_BC in _blocks(queries, codes, num_labels, top, filtered):
        products_BGW = products_BC.view(len(products_BC), -1, GROUP)
        groups_BG = _best(products_BGW, 2)
        if best_BK is None:
            new_BN = _many_groups(products_BC, groups_BG, top)
        else:
            new_BN = np.concatenate([best_BK, groups_BG], axis=1)
        best_BK = np.partition(new_BN, new_BN.shape[1] - top, axis=1)[:, -top:]
        low_B = _lowered(best_BK[:, 0], margin_B, codes.product_type == torch.int32)
        rows_N, columns_N, products_N = _above(products_BGW, groups_BG, low_B)
        if len(rows_N) > max(MOST_CANDIDATES * products_BC.numel(), 4 * top * len(products_BC)):
            return None
        found.append((rows_N, columns_N + start, products_N))
    assert best_BK is not None
    rows_N, labels_N, products_N = (np.concatenate(parts) for parts in zip(*found, strict=True))
    kept_N = np.flatnonzero(products_N >= low_B[rows_N])
    if len(found) > 1:
        kept_N = kept_N[rows_N[kept_N].astype(np.int16).argsort(kind="stable")]
    return Candidates(rows_N[kept_N], labels_N[kept_N], products_N[kept_N], best_BK[:, 0])


def _blocks(
    queries: CodedQueries, codes: Codes, num_labels: int, top: int, filtered: Filtered
) -> Iterator[tuple[int, Tensor]]:
    """The products with some labels at a time, in a buffer that the next ones overwrite."""
    num_queries, num_codes = len(queries.codes_BD), len(codes.codes_LD)
    assert top * GROUP <= num_codes, "the first block has K groups"
    assert num_queries < 2**15, num_queries
    width = min(max(GROUP * top, PRODUCTS_AT_ONCE // num_queries // GROUP * GROUP), num_codes)
    buffer = torch.empty(num_queries * width, dtype=codes.product_type)
    for start in range(0, num_codes, width):
        stop = min(start + width, num_codes)
        products_BC = buffer[: num_queries * (stop - start)].view(num_queries, stop - start)
        codes.products(queries, start, products_BC)
        filtered.cross_out(products_BC, start)
        if stop > num_labels:
            products_BC[:, num_labels - start :] = lowest(products_BC.dtype)  # the last group may hold fewer labels
        yield start, products_BC


def _many_groups(products_BC: Tensor, groups_BG: Array, top: int) -> Array:
    """The bests of groups that are many more than `top`: few would set a low cut. Here any groups will do, and those
    of eight labels far from each other are quickly looked at."""
    if groups_BG.shape[1] >= 8 * top:
        return groups_BG
    return _best(products_BC.view(len(products_BC), 8, -1), 1)


def _best(products_BXY: Tensor, dim: int) -> Array:
    """For few queries in numpy: starting a second thread takes longer, the more so where other programs run."""
    if len(products_BXY) <= FEW_QUERIES:
        return np.asarray(_comparable(products_BXY).max(axis=dim))
    return _comparable(products_BXY.amax(dim=dim))


def _comparable(products: Tensor) -> Array:
    """For numpy, which knows no bf16."""
    array: Array = (products if products.dtype == torch.int32 else products.float()).numpy()
    return array


def _lowered(cut_B: Array, margin_B: Array, whole: bool) -> Array:
    """Cuts less a margin, in no case too high, as the products are compared, but above all that is crossed out."""
    low_B = cut_B.astype(np.float64) - margin_B * (1 + ROUNDED)
    low_B -= np.abs(low_B) * ROUNDED
    if whole:
        return np.clip(np.ceil(low_B), -(2**30), 2**30).astype(np.int32)
    return np.maximum(low_B, LOWEST).astype(np.float32)


def _above(products_BGW: Tensor, groups_BG: Array, low_B: Array) -> tuple[Array, Array, Array]:
    """Rows, columns and values of the products that reach the row's `low`, in order."""
    which_M = np.flatnonzero(groups_BG >= low_B[:, None])
    near_MW = _comparable(products_BGW.view(-1, GROUP).index_select(0, torch.from_numpy(which_M)))
    rows_M, group_M = (part_M.astype(np.int32) for part_M in np.divmod(which_M, groups_BG.shape[1]))
    found_N = np.flatnonzero(near_MW >= low_B[rows_M, None])
    at_N, place_N = np.divmod(found_N.astype(np.int32), GROUP)
    return rows_M[at_N], group_M[at_N] * GROUP + place_N, near_MW.ravel()[found_N]


def _judge(
    h_BD: Tensor, z_LD: Tensor, queries: CodedQueries, top: int, candidates: Candidates
) -> tuple[Tensor, Tensor]:
    """The best of the candidates by exact scores: of those that reach the cut, and those that may pass the K-th."""
    rows_N, labels_N, products_N, cut_B = candidates
    if len(h_BD) <= FEW_QUERIES:  # all at once: calls cost more than products
        ids_BW, scores_BW = _scored(h_BD, z_LD, rows_N, labels_N, top)
        return _in_order(ids_BW, scores_BW, top)
    cut_N = cut_B[rows_N]
    sure = np.flatnonzero(products_N >= cut_N)
    ids_BV, scores_BV = _scored(h_BD, z_LD, rows_N[sure], labels_N[sure], top)
    kth_B = np.partition(scores_BV, scores_BV.shape[1] - top, axis=1)[:, -top]
    error_B, unit_B = (column_B1[:, 0].numpy() for column_B1 in (queries.error_B1, queries.unit_B1))
    whole = products_N.dtype == np.int32
    low_B = _lowered(kth_B / unit_B.astype(np.float64), error_B / unit_B, whole)
    may = np.flatnonzero((products_N < cut_N) & (products_N >= low_B[rows_N]))
    ids_BW, scores_BW = _scored(h_BD, z_LD, rows_N[may], labels_N[may], 0)
    return _in_order(np.concatenate([ids_BV, ids_BW], axis=1), np.concatenate([scores_BV, scores_BW], axis=1), top)


def _in_order(ids_BW: Array, scores_BW: Array, top: int) -> tuple[Tensor, Tensor]:
    ids_BK, scores_BK = best_first(ids_BW, scores_BW, top)
    return torch.from_numpy(ids_BK), torch.from_numpy(scores_BK)


def _scored(h_BD: Tensor, z_LD: Tensor, rows_N: Array, labels_N: Array, least: int) -> tuple[Array, Array]:
    """Ids and exact scores as tables with one line a query and at least so many columns; -1 and -inf where empty."""
    counts_B = np.bincount(rows_N, minlength=len(h_BD))
    scores_N = exact_scores(h_BD, z_LD, torch.from_numpy(counts_B), torch.from_numpy(labels_N)).numpy()
    places_N = np.arange(len(rows_N)) - np.repeat(counts_B.cumsum() - counts_B, counts_B)
    shape = (len(h_BD), max(least, int(counts_B.max())))
    ids_BW, scores_BW = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf, dtype=np.float32)
    ids_BW[rows_N, places_N], scores_BW[rows_N, places_N] = labels_N, scores_N
    return ids_BW, scores_BW


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
