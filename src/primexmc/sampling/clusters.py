"""Balanced clusters: recursive 2-means by cosine, a whole level of the tree at once.

Shapes: N points, D dimensions, S nodes of the level, 2S halves.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

CELLS_AT_ONCE = (2**19, 2**27)  # of the temporaries: what fits the CPU's caches, what keeps a GPU busy
ROWS_PER_SUM = 1_024  # long sums are cut so that all cores and the GPU's blocks have work


@torch.no_grad()
def balanced_clusters(x_ND: Tensor, num_clusters: int, *, seed: int, iterations: int = 8) -> Tensor:
    """The cluster of each point, int64 on the points' device; cluster sizes differ by one at most.

    The rows of `x_ND` have length 1. Cluster j owns the places N j / K to N (j + 1) / K of a line on which the points
    are sorted again and again: each level cuts every node's range of clusters in the middle, and 2-means decides which
    of its points lie left of the cut. On the CPU the same seed gives the same clusters.
    """
    num_points = len(x_ND)
    if not 1 <= num_clusters <= max(num_points, 1):
        raise ValueError(f"{num_points} points make 1 to {num_points} clusters, not {num_clusters}")
    rng = np.random.default_rng(seed)
    place_K = np.arange(num_clusters + 1, dtype=np.int64) * num_points // num_clusters
    order_N = torch.arange(num_points, device=x_ND.device)
    cluster_S = np.array([0, num_clusters])
    while len(cluster_S) <= num_clusters:
        middle_S = (cluster_S[:-1] + cluster_S[1:] + 1) // 2
        order_N = _split_level(x_ND, order_N, place_K[cluster_S], place_K[middle_S], rng, iterations)
        cluster_S = np.union1d(cluster_S, middle_S)
    cluster_N = torch.empty_like(order_N)
    cluster_N[order_N] = _ids(place_K, x_ND.device)
    return cluster_N


def _split_level(
    x_ND: Tensor, order_N: Tensor, start_S: np.ndarray, middle_S: np.ndarray, rng: np.random.Generator, iterations: int
) -> Tensor:
    """The points of every node in a new order: nearer to the left half's mean come first."""
    halves = np.stack([start_S[:-1], middle_S], 1).ravel()
    halves = np.append(halves, start_S[-1])
    node_N, sums = _ids(start_S, x_ND.device), _SegmentSums(halves, x_ND.device)
    first, second = _two_places(start_S, rng)
    towards_SD = normalize(x_ND[order_N[first]].float() - x_ND[order_N[second]].float(), dim=1)
    for iteration in range(iterations):
        if iteration:
            mean_SD = normalize(sums(x_ND, order_N), dim=1)
            towards_SD = normalize(mean_SD[0::2] - mean_SD[1::2], dim=1)
        score_N = _scores(x_ND, order_N, towards_SD, node_N)
        # |score| <= 1, so this key sorts by node first; float64 keeps the scores apart for millions of nodes
        key_N = node_N.double().mul_(4).sub_(score_N)
        order_N = order_N[key_N.argsort(stable=True)]
    return order_N


def _ids(start_S: np.ndarray, device: torch.device) -> Tensor:
    """`[0, 0, 0, 1, 1, ...]`: the number of the range that each place lies in."""
    return torch.from_numpy(np.repeat(np.arange(len(start_S) - 1), np.diff(start_S))).to(device)


def _two_places(start_S: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two different places in every node (the same one where a node has but one point)."""
    size_S = np.diff(start_S)
    first = rng.integers(0, size_S)
    step = rng.integers(0, np.maximum(size_S - 1, 1)) + 1
    return start_S[:-1] + first, start_S[:-1] + (first + step) % size_S


def _scores(x_ND: Tensor, order_N: Tensor, towards_SD: Tensor, node_N: Tensor) -> Tensor:
    """Inner product of each point (in order) with its node's direction.

    Into the same two buffers again and again: fresh memory for every part would cost more than the arithmetic.
    """
    rows_at_once = min(len(x_ND), CELLS_AT_ONCE[x_ND.device.type != "cpu"] // x_ND.shape[1] + 1)
    points, products = x_ND.new_empty(rows_at_once, x_ND.shape[1]), towards_SD.new_empty(rows_at_once, x_ND.shape[1])
    score_N = towards_SD.new_empty(len(order_N))
    for start in range(0, len(order_N), rows_at_once):
        part = slice(start, start + rows_at_once)
        n = len(order_N[part])
        torch.index_select(x_ND, 0, order_N[part], out=points[:n])
        torch.index_select(towards_SD, 0, node_N[part], out=products[:n])
        torch.sum(products[:n].mul_(points[:n]), 1, out=score_N[part])
    return score_N


class _SegmentSums:
    """Sums of the points between each two starts. What depends on the starts alone is made once: for millions of them
    that takes the CPU longer than the sums take a GPU."""

    def __init__(self, start_S: np.ndarray, device: torch.device) -> None:
        cuts, segment = start_S[:-1], np.arange(len(start_S) - 1)
        if np.diff(start_S).max(initial=0) > ROWS_PER_SUM:
            cuts = np.union1d(start_S, np.arange(0, start_S[-1], ROWS_PER_SUM))[:-1]
            segment = np.searchsorted(start_S, cuts, side="right") - 1
        self.num_segments = len(start_S) - 1
        self.cut_C, self.segment_C = (torch.from_numpy(part).to(device) for part in (cuts, segment))

    def __call__(self, x_ND: Tensor, order_N: Tensor) -> Tensor:
        sums_CD = embedding_bag(order_N, x_ND, self.cut_C, mode="sum").float()
        total_SD = sums_CD.new_zeros(self.num_segments, x_ND.shape[1])
        return total_SD.index_add_(0, self.segment_C, sums_CD)
