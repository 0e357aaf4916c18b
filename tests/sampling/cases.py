"""Points for clustering, and how good a clustering is."""

from __future__ import annotations

import numpy as np
import torch


def unit_points(seed, num, dimensions=8):
    points = np.random.default_rng(seed).normal(size=(num, dimensions))
    return torch.tensor(points / np.linalg.norm(points, axis=1, keepdims=True), dtype=torch.float32)


def planted(seed, num_groups, group_size, dimensions=32, noise=0.1):
    """Points around random directions, in random order, and the group of each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(num_groups, dimensions))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    group = rng.permutation(np.repeat(np.arange(num_groups), group_size))
    points = centres[group] + noise * rng.normal(size=(len(group), dimensions))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return torch.tensor(points, dtype=torch.float32), group


def mean_cosine(points, cluster):
    """Average cosine of a point to the mean of its cluster, by loops over clusters."""
    points, cluster = points.double().cpu().numpy(), np.asarray(cluster)
    total = 0.0
    for number in np.unique(cluster):
        members = points[cluster == number]
        mean = members.mean(0)
        total += (members @ mean).sum() / np.linalg.norm(mean)
    return total / len(points)
