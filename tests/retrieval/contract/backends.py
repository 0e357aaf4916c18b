"""Every backend by name, and a small world of labels and queries that lie as trained ones do: in clusters."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from primexmc.retrieval.approximate import ApproximateIndex
from primexmc.retrieval.exact import ExactIndex
from primexmc.retrieval.faiss_engine import KINDS, FaissEngine
from primexmc.retrieval.milvus_engine import MilvusEngine

D = 16


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


EXACT = [f"exact {precision}" for precision in ("fp32", "bf16", "int8", "auto")]
FAISS = [pytest.param(f"faiss {kind}", marks=needs("faiss")) for kind in KINDS]
MILVUS = [pytest.param(name, marks=needs("milvus_lite")) for name in ("milvus embedded", "milvus server")]
BACKENDS = [*EXACT, *FAISS, *MILVUS]


def unit(x):
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def world(num_labels=600, num_queries=20, seed=0):
    """z_LD and h_QD, each of length 1."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((30, D))
    z = unit(centres[rng.integers(0, 30, num_labels)] + 0.7 * rng.standard_normal((num_labels, D)))
    h = unit(centres[rng.integers(0, 30, num_queries)] + 0.7 * rng.standard_normal((num_queries, D)))
    return z, h


class Maker:
    """Builds any backend; what it made is closed at the end."""

    def __init__(self, place, server):
        self.place, self.server, self.made = place, server, []

    def __call__(self, name, z):
        index = self._make(name, torch.from_numpy(np.asarray(z, np.float32)))
        self.made.append(index)
        return index

    def engine(self, name):
        kind, detail = name.split(" ")
        if kind == "faiss":
            return FaissEngine(detail)
        return MilvusEngine(self.server() if detail == "server" else "", "labels")

    def load(self, name, directory, z, facts):
        kind, _ = name.split(" ")
        z = torch.from_numpy(z)
        if kind == "exact":
            return ExactIndex.load(directory, z, facts)
        self.made.append(ApproximateIndex.load(self.engine(name), directory, z, facts["engine"] and facts))
        return self.made[-1]

    def _make(self, name, z):
        kind, detail = name.split(" ")
        if kind == "exact":
            return ExactIndex(z, precision=detail)
        directory = self.place / f"index {len(self.made)}"
        directory.mkdir()
        return ApproximateIndex.build(self.engine(name), z, z[:100], directory)

    def close(self):
        for index in self.made:
            index.close()


def brute_force(z, h, top, banned=()):
    """(ids, scores) of each query, by a full sort in float64; `banned` are pairs (query, label)."""
    ids, scores = np.full((len(h), top), -1), np.full((len(h), top), -np.inf)
    for row, query in enumerate(h.astype(np.float64)):
        found = [(-float(query @ label), number) for number, label in enumerate(z.astype(np.float64))]
        found = sorted(pair for pair in found if (row, pair[1]) not in banned)[:top]
        for rank, (score, number) in enumerate(found):
            ids[row, rank], scores[row, rank] = number, -score
    return ids, scores
