"""Centroids: exact means in blocks of any size, and the moving average, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.model import centroids as module
from primexmc.model.centroids import Centroids

NUM_QUERIES, NUM_LABELS, DIM = 23, 11, 5


def world(seed=0):
    """Random positives; label 3 has no query, query 4 no label."""
    rng = np.random.default_rng(seed)
    true = rng.random((NUM_QUERIES, NUM_LABELS)) < 0.2
    true[:, 3] = False
    true[4] = False
    h = rng.normal(size=(NUM_QUERIES, DIM))
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    return torch.tensor(h, dtype=torch.float32), csr_matrix(true.astype(np.float32)), true


def slow_means(h, true):
    means, has = np.zeros((NUM_LABELS, DIM)), np.zeros(NUM_LABELS, dtype=bool)
    for label in range(NUM_LABELS):
        queries = [query for query in range(NUM_QUERIES) if true[query, label]]
        if queries:
            has[label] = True
            for query in queries:
                means[label] += h[query].double().numpy() / len(queries)
    return means, has


@pytest.mark.parametrize("sizes", [[23], [1] * 23, [5, 0, 11, 7], [20, 3]])
@pytest.mark.parametrize("pairs_per_step", [1, 3, 1000])
def test_exact_means_whatever_the_blocks(sizes, pairs_per_step, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_PER_STEP", pairs_per_step)
    h, positives, true = world()
    centroids = Centroids(torch.full((NUM_LABELS, DIM), 7.0), torch.ones(NUM_LABELS, dtype=torch.bool))
    centroids.set_to_mean(h.split(sizes), positives)
    means, has = slow_means(h, true)
    assert not has[3] and has.sum() > 5
    assert centroids.has_L.tolist() == has.tolist()
    np.testing.assert_allclose(centroids.c_LD.numpy(), means, atol=1e-6)


def test_relevance_does_not_weigh():
    h, positives, true = world()
    positives.data[:] = np.random.default_rng(1).uniform(0.1, 3, positives.nnz)
    centroids = Centroids.empty(NUM_LABELS, DIM, torch.device("cpu"))
    centroids.set_to_mean([h], positives)
    np.testing.assert_allclose(centroids.c_LD.numpy(), slow_means(h, true)[0], atol=1e-6)


def test_the_moving_average():
    centroids = Centroids.empty(NUM_LABELS, DIM, torch.device("cpu"))
    h, positives, _ = world()
    centroids.set_to_mean([h], positives)
    before = centroids.c_LD.clone()
    labels, means = torch.tensor([9, 3, 0]), torch.randn(3, DIM)
    centroids.move(labels, means, 0.9)
    for label in range(NUM_LABELS):
        expected = before[label].double().numpy().copy()
        if label in labels.tolist():
            expected = 0.9 * expected + 0.1 * means[labels.tolist().index(label)].double().numpy()
        np.testing.assert_allclose(centroids.c_LD[label].numpy(), expected, atol=1e-6)
    assert not centroids.has_L[3], "moving gives no centroid to a label without queries"


def test_empty():
    centroids = Centroids.empty(3, 2, torch.device("cpu"))
    assert not centroids.has_L.any() and centroids.c_LD.abs().sum() == 0
