"""Balanced clusters: all points, equal sizes, and better than chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling.cases import mean_cosine, planted, unit_points

from primexmc.sampling import balanced_clusters, clusters


def assert_balanced(cluster, num_points, num_clusters):
    sizes = torch.bincount(cluster, minlength=num_clusters)
    assert cluster.dtype == torch.int64
    assert len(cluster) == num_points and len(sizes) == num_clusters
    assert sizes.max() - sizes.min() <= 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_any_number_of_clusters_of_equal_size(num_points, data):
    num_clusters = data.draw(st.integers(1, num_points))
    assert_balanced(balanced_clusters(unit_points(0, num_points), num_clusters, seed=0), num_points, num_clusters)


@pytest.mark.parametrize(
    ("num_points", "num_clusters"), [(1, 1), (97, 97), (97, 1), (97, 13), (1009, 101), (1024, 256)]
)
def test_corners(num_points, num_clusters):
    cluster = balanced_clusters(unit_points(1, num_points), num_clusters, seed=3)
    assert_balanced(cluster, num_points, num_clusters)


def test_equal_points_and_zero_vectors_still_balance():
    for points in (torch.ones(50, 4) / 2, torch.zeros(50, 4)):
        assert_balanced(balanced_clusters(points, 7, seed=0), 50, 7)


@pytest.mark.parametrize("num_clusters", [0, -1, 11])
def test_impossible_numbers(num_clusters):
    with pytest.raises(ValueError, match="10 points make"):
        balanced_clusters(unit_points(0, 10), num_clusters, seed=0)


def test_same_seed_same_clusters_and_another_seed_others():
    points = unit_points(2, 500)
    first, again, other = (balanced_clusters(points, 40, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_two_planted_halves_are_found():
    for seed in range(20):
        points, group = planted(seed, 2, 50)
        cluster = balanced_clusters(points, 2, seed=seed).numpy()
        assert len(set(zip(cluster.tolist(), group.tolist(), strict=True))) == 2


def test_planted_groups_stay_together():
    """64 groups of 16: two points of a group are mostly in one cluster (by chance 1.5 %; a level's cut must halve, and
    halves some groups)."""
    shares = []
    for seed in range(5):
        points, group = planted(seed, 64, 16)
        cluster = balanced_clusters(points, 64, seed=seed).numpy()
        same_group = group[:, None] == group[None]
        np.fill_diagonal(same_group, False)
        shares.append((cluster[:, None] == cluster[None])[same_group].mean())
    assert np.mean(shares) > 0.6


@pytest.mark.parametrize("size", [4, 16, 64])
def test_better_than_random(size):
    """The mean cosine to the cluster's mean gains a third of what is left above random assignment, at the least."""
    points, _ = planted(0, 128, 16, noise=0.15)
    num_clusters = len(points) // size
    found = mean_cosine(points, balanced_clusters(points, num_clusters, seed=0))
    chance = mean_cosine(points, np.random.default_rng(0).permutation(len(points)) % num_clusters)
    assert found - chance > (1 - chance) / 3


def test_more_iterations_are_better():
    points, _ = planted(1, 128, 16, noise=0.15)
    few, many = (mean_cosine(points, balanced_clusters(points, 128, seed=0, iterations=i)) for i in (1, 8))
    assert many > few


def test_parts_change_nothing(monkeypatch):
    """However small the temporaries are cut, the clusters are the same."""
    points = unit_points(4, 700)
    whole = balanced_clusters(points, 50, seed=1)
    monkeypatch.setattr(clusters, "CELLS_AT_ONCE", (100, 100))
    assert torch.equal(whole, balanced_clusters(points, 50, seed=1))


def test_segment_sums_by_loops(monkeypatch):
    monkeypatch.setattr(clusters, "ROWS_PER_SUM", 7)
    points, order = unit_points(5, 60).double(), torch.randperm(60, generator=torch.Generator().manual_seed(0))
    starts = np.array([0, 3, 3, 31, 60])
    sums = clusters._SegmentSums(starts, torch.device("cpu"))(points.float(), order)
    for segment, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
        expected = sum((points[row] for row in order[start:end].tolist()), torch.zeros(8, dtype=torch.float64))
        np.testing.assert_allclose(sums[segment].numpy(), expected.numpy(), atol=1e-5)


def test_half_precision_points():
    points, group = planted(0, 2, 50)
    cluster = balanced_clusters(points.half(), 2, seed=0).numpy()
    assert len(set(zip(cluster.tolist(), group.tolist(), strict=True))) == 2
