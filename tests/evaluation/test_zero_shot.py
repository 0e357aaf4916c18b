"""The untrained encoder against cosines taken one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.data.corpus import Labels, Split
from primexmc.evaluation.zero_shot import zero_shot
from primexmc.model.encode import TextReader
from primexmc.model.encoder import load_encoder

LABELS = ["a boat at sea", "horses", "the castle by the river", "moonlight over a garden", "a ship"]
QUERIES = ["sailing boats in a storm on the sea", "a rider on a horse", "garden at night"]


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


@pytest.mark.parametrize("filtered", [False, True])
def test_nearest_label_texts_first(filtered):
    settings = Settings().with_values(
        {
            "training.device": "cpu",
            "search.top": 3,
            "data.query_tokens": 5,
            "data.label_tokens": 3,
            "encoder.query_prefix": "painting ",
            "encoder.label_prefix": "of ",
        },
        "test",
    )
    pairs = csr_matrix(np.array([[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]], np.float32))
    positives = csr_matrix((len(QUERIES), len(LABELS)), dtype=np.float32)
    queries = Split(QUERIES, positives, QUERIES, pairs if filtered else None)
    encoder = load_encoder(settings.encoder)

    def vector(text, max_tokens):
        return TextReader(encoder, max_tokens, "").encode([text], torch.device("cpu"), bf16=False)[0].double().tolist()

    expected = []
    for row, query in enumerate(QUERIES):
        q = vector("painting " + query, 5)
        allowed = [label for label in range(len(LABELS)) if not (filtered and pairs[row, label])]
        expected.append(sorted(allowed, key=lambda label: -cosine(q, vector("of " + LABELS[label], 3)))[:3])
    assert zero_shot(settings, Labels(LABELS, LABELS, LABELS), queries).tolist() == expected
