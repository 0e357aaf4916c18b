"""A small model with a memory, whose prototypes are what its network makes of its labels."""

from __future__ import annotations

import numpy as np
import torch
from model.tiny import THINGS, WORDS, static_encoder
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.data.corpus import Labels
from primexmc.data.texts import Texts
from primexmc.model.centroids import Centroids
from primexmc.model.memory import Memory
from primexmc.model.model import PrimeModel
from primexmc.model.network import PrimeNetwork
from primexmc.model.new_prototypes import label_vectors, trained_prototypes

NUM_LABELS, NUM_QUERIES, F = 30, 80, 6


def made_model(*, seed=0, remembers=True, **values):
    """Label 3 has no training query."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    settings = Settings().with_values({"prototypes.num_free_vectors": F, "prototypes.width": 8} | values, "test")
    texts = [" ".join(rng.choice(WORDS, 3)) + f" {THINGS[n % 10]}" for n in range(NUM_LABELS)]
    queries = [f"{number} " + " ".join(rng.choice(WORDS, 6)) for number in range(NUM_QUERIES)]
    dense = (rng.random((NUM_QUERIES, NUM_LABELS)) < 0.1).astype(np.float32)
    dense[:, 3], dense[:, 0], dense[:4, 1] = 0, rng.random(NUM_QUERIES) < 0.2, 1
    dense[np.flatnonzero(dense.sum(1) == 0), 2] = 1
    positives = csr_matrix(dense)
    free_vectors = torch.randint(0, F, (NUM_LABELS,))
    model = PrimeModel(
        settings=settings,
        labels=Labels([f"uid {n}" for n in range(NUM_LABELS)], texts, texts),
        label_counts_L=dense.sum(axis=0).astype(np.int64),
        num_train_queries=NUM_QUERIES,
        network=PrimeNetwork(static_encoder(seed=seed), settings.prototypes, free_vectors),
        prototypes_LD=torch.zeros(NUM_LABELS, 16),
        centroids=Centroids.empty(NUM_LABELS, 16, torch.device("cpu")),
        facts={"corpus": "made up", "validation": {}},
    )
    h_ND = torch.from_numpy(model.encode(queries))
    if settings.prototypes.enabled and settings.prototypes.centroid:
        model.centroids.set_to_mean([h_ND], positives)
    h_LD = label_vectors(model, texts)
    model.prototypes_LD = trained_prototypes(model, h_LD, model.centroids, model.network.free_vector_of_L)
    model.memory = Memory(h_ND.half(), positives, Texts.of(queries)) if remembers else None
    model.labels_changed()
    return model


def state_of(model):
    """Every bit that can be compared."""
    memory = model.memory
    state = {
        "uids": list(model.labels.uids),
        "names": list(model.labels.names),
        "texts": list(model.labels.texts),
        "counts": model.label_counts_L.tolist(),
        "prototypes": model.prototypes_LD.tolist(),
        "centroids": model.centroids.c_LD.tolist(),
        "centroid counts": model.centroids.count_L.tolist(),
        "free vectors": model.network.free_vector_of_L.tolist(),
        "queries": model.num_train_queries,
        "trained": None if model.trained_L is None else model.trained_L.tolist(),
    }
    if memory is not None:
        state |= {"h": memory.h_ND.tolist(), "pairs": memory.positives.toarray().tolist(), "texts": list(memory.texts)}
    return state
