"""Recall is counted as one would by hand, told for queries that did not choose the effort, and ties count as found."""

from __future__ import annotations

import numpy as np
import torch
from retrieval.contract.backends import world

from primexmc.retrieval.recall import made_up_queries, recall_of, tune


class Engine:
    """Finds the best `effort` labels of every query, and rubbish beside."""

    surplus = 0.0

    def __init__(self, z):
        self.z, self.effort, self.asked = z, 0, []

    def efforts(self):
        return [10, 50, 90, 100]

    def search(self, h, width):
        self.asked.append((self.effort, len(h)))
        best = np.argsort(-(h @ self.z.T), axis=1, kind="stable")
        return np.concatenate([best[:, : self.effort], best[:, -width:]], axis=1)[:, :width]


def test_the_least_effort_that_is_enough():
    z, h = world(800, 31)
    for wanted, effort, recall in [(0.05, 10, 0.1), (0.5, 50, 0.5), (0.51, 90, 0.9), (1.0, 100, 1.0)]:
        engine = Engine(z)
        found = tune(engine, torch.from_numpy(z), torch.from_numpy(h), wanted)
        assert (found.effort, found.recall, found.at, found.num_queries) == (effort, recall, 100, 15)
        assert engine.effort == effort and engine.asked[-1] == (effort, 15)
        assert all(size == 16 for _, size in engine.asked[:-1])


def test_recall_by_hand():
    z = np.array([[1, 0], [1, 0], [0, 1], [-1, 0]], np.float32)
    h = np.array([[1, 0], [0, 1]], np.float32)
    truth, last = np.array([[0], [2]]), np.array([1, 1], np.float32)
    assert recall_of(np.array([[1], [2]]), truth, last, h, z) == 1  # label 1 is as good as label 0
    assert recall_of(np.array([[3], [-1]]), truth, last, h, z) == 0
    assert recall_of(np.array([[0], [3]]), truth, last, h, z) == 0.5


def test_made_up_queries_lie_beside_labels():
    z = torch.from_numpy(world(500)[0])
    queries = made_up_queries(z, 200)
    assert queries.shape == (200, z.shape[1])
    torch.testing.assert_close(queries.norm(dim=1), torch.ones(200))
    nearest = (queries @ z.T).amax(dim=1)
    assert 0.6 < nearest.mean() < 0.95
    torch.testing.assert_close(made_up_queries(z, 200), queries)
    assert len(made_up_queries(z[:3], 200)) == 3
