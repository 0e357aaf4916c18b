"""A corpus so small that training on it takes a second, and a checkout with a peer that is a page of numpy."""

from __future__ import annotations

import sys

import numpy as np
from scipy.sparse import csr_matrix

from primexmc.data.corpus import Corpus, Labels, Split

THINGS = ["boat", "river", "horse", "tree", "castle", "bridge", "church", "mountain", "dog", "ship", "moon", "garden"]
QUICK = {
    "training.epochs": 2,
    "training.batch_size": 32,
    "training.device": "cpu",
    "data.validation_fraction": 0.2,
    "data.query_tokens": 16,
    "data.label_tokens": 16,
}

FAKE_PEER = """
import json, sys
from pathlib import Path
import numpy as np
from scipy.sparse import load_npz

place = Path(sys.argv[1])
task = json.loads((place / "task.json").read_text(encoding="utf-8"))
train, labels, queries = (
    load_npz(place / f"{name}.npz").tocsr() for name in ("train_features", "train_labels", "query_features")
)
assert train.shape[0] == labels.shape[0] and train.shape[1] == queries.shape[1]
counts = np.asarray(labels.sum(axis=0)).ravel()
best = np.argsort(-counts, kind="stable")[: task["top"]]
np.save(place / "predictions.npy", np.tile(best, (queries.shape[0], 1)))
seen = {"task": task, "train": list(train.shape), "labels": list(labels.shape), "queries": list(queries.shape)}
Path(__file__).with_name("seen.json").write_text(json.dumps(seen), encoding="utf-8")
answer = {"train_s": 1.5, "predict_s": 0.5, "version": "fake 1"}
(place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
"""


def make_split(seed, size, filtered=False):
    """Texts that name what they show, frequent things first; each filter row holds one right and one wrong label."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, len(THINGS) + 1)
    shown = [sorted(rng.choice(len(THINGS), 2, replace=False, p=chance / chance.sum()).tolist()) for _ in range(size)]
    texts = [f"a painting of a {THINGS[one]} and a {THINGS[other]}" for one, other in shown]
    indptr = np.arange(0, 2 * size + 1, 2)
    positives = csr_matrix((np.ones(2 * size, np.float32), np.concatenate(shown), indptr), shape=(size, len(THINGS)))
    pairs = None
    if filtered:
        columns = [sorted({things[0], int(rng.integers(len(THINGS)))}) for things in shown]
        rows = np.repeat(np.arange(size), [len(row) for row in columns])
        pairs = csr_matrix((np.ones(len(rows), np.float32), (rows, np.concatenate(columns))), shape=positives.shape)
    return Split(texts, positives, [f"{seed}-{row}" for row in range(size)], pairs)


def make_corpus(filtered=False):
    return Corpus(
        "paintings", Labels(THINGS, THINGS, THINGS), train=make_split(0, 90), test=make_split(1, 25, filtered)
    )


def make_checkout(root, script=FAKE_PEER, peer="pecos"):
    """A repository with one peer in it, under the Python of the tests."""
    scripts, programs = root / "benchmarks" / "peers", root / ".peers" / peer / "bin"
    scripts.mkdir(parents=True)
    programs.mkdir(parents=True)
    (scripts / f"{peer}_peer.py").write_text(script, encoding="utf-8")
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return root
