"""Corpora and settings so small that a training takes a tenth of a second."""

from __future__ import annotations

import json

import numpy as np
import torch
from model.tiny import THINGS
from safetensors.torch import load_file
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.data.corpus import Corpus, Labels, Split
from primexmc.training.data import prepare
from primexmc.training.phase import Phase

NUM_LABELS = len(THINGS)
TIMES = {"seconds", "queries_per_s", "memory_gib"}
QUICK = {
    "encoder.dropout": 0.1,
    "prototypes.width": 8,
    "prototypes.num_free_vectors": 4,
    "prototypes.dropout": 0.1,
    "sampling.largest_cluster": 8,
    "sampling.refresh": 0.3,
    "loss.num_negatives": 5,
    "data.query_tokens": 16,
    "data.label_tokens": 8,
    "data.validation_fraction": 0.2,
    "training.epochs": 5,
    "training.batch_size": 16,
    "training.warmup_steps": 3,
    "training.learning_rate": 0.02,
    "training.prototype_learning_rate": 0.01,
    "training.validate_every": 1,
    "training.threads": 1,
    "search.top": 5,
}


def quick(**values):
    """`quick(training__epochs=2)`"""
    return QUICK | {key.replace("__", "."): value for key, value in values.items()}


def make_split(seed, size, num_labels=NUM_LABELS):
    """Texts that name what they show; label i is THINGS[i]."""
    rng = np.random.default_rng(seed)
    shown = [sorted(rng.choice(num_labels, min(2, num_labels), replace=False).tolist()) for _ in range(size)]
    return split_of(
        [f"a painting of {', '.join(THINGS[n] for n in things)}" for things in shown], shown, num_labels, seed
    )


def split_of(texts, rows, num_labels=NUM_LABELS, seed=0):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.concatenate([*map(np.asarray, rows), np.zeros(0)]).astype(np.int32)
    positives = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), num_labels))
    return Split(texts, positives, [f"{seed}-{row}" for row in range(len(rows))])


def make_corpus(size=60, num_labels=NUM_LABELS, seed=0):
    return corpus_of(make_split(seed, size, num_labels), num_labels, test=make_split(seed + 1, 20, num_labels))


def corpus_of(train, num_labels=NUM_LABELS, **others):
    names = THINGS[:num_labels]
    return Corpus("made up", Labels(names, names, names), train=train, **others)


def make_phase(corpus, encoder, values, name="all"):
    settings = Settings().with_values(values, "test")
    data = prepare(corpus, corpus.split("train"), encoder, settings)
    return Phase(name, settings, data, settings.training.epochs, bf16=False)


def rows_of(place):
    """metrics.jsonl without what depends on the clock."""
    rows = [json.loads(line) for line in (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(TIMES & row.keys() for row in rows)
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def tensors_of(place):
    """Every tensor of a saved model."""
    return {
        f"{file.relative_to(place)}:{name}": value
        for file in sorted(place.rglob("*.safetensors"))
        for name, value in load_file(file).items()
    }


def assert_same_tensors(one, other):
    assert one.keys() == other.keys() and len(one) > 5
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert different == []


def losses_of(place):
    return [row["loss"] for row in rows_of(place) if row["phase"] == "train"]
