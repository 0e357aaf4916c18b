"""Validation while training: the metrics of prototypes as they would be now, against loops over everything."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from evaluation.slow_metrics import slow_metrics
from model.tiny import batch_of, static_encoder
from scipy.sparse import csr_matrix
from training.cases import make_corpus, make_phase, make_split, quick

from primexmc.training import train as module
from primexmc.training.begin import begin_state
from primexmc.training.finish import exact_prototypes
from primexmc.training.validate import Validator

CPU = torch.device("cpu")


def rows(matrix):
    return [set(matrix[[row]].indices.tolist()) for row in range(matrix.shape[0])]


@pytest.mark.parametrize("with_filter", [True, False])
def test_against_loops(with_filter):
    """Filter pairs are no answers, prefixes are read, and propensities come from all of train."""
    torch.manual_seed(0)
    corpus, encoder = make_corpus(50), static_encoder()
    phase = make_phase(corpus, encoder, quick(encoder__query_prefix="red "), name="choose")
    state = begin_state(phase, encoder, CPU)
    full, val = make_split(5, 90), make_split(9, 30)
    banned = np.random.default_rng(0).random((30, 10)) < (0.4 if with_filter else 0)
    banned &= val.positives.toarray() == 0
    if with_filter:
        val = dataclasses.replace(val, filtered=csr_matrix(banned.astype(np.float32)))
    z = exact_prototypes(state.network, phase.data, CPU, bf16=False)[0]
    with torch.no_grad():
        h = encoder(batch_of(encoder, [f"red {text}" for text in val.texts]))
    scores = (torch.nn.functional.normalize(h, dim=1) @ z.T).numpy()
    pred = []
    for row in range(30):
        able = sorted((n for n in range(10) if not banned[row, n]), key=lambda n: -scores[row, n])
        pred.append((able + [-1] * 10)[:10])
    found = Validator(phase, val, full)(state)
    expected = slow_metrics(pred, rows(val.positives), rows(full.positives), 10)
    assert found.keys() == expected.keys() and 0 < found["nDCG@5"] < 100
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name
    if with_filter:
        without = Validator(phase, dataclasses.replace(val, filtered=None), full)(state)
        assert without["nDCG@5"] < found["nDCG@5"]


def test_what_training_validates_on(tmp_path, monkeypatch):
    """What is held out, with the frequencies of the undivided train."""
    asked = []

    class Seen(Validator):
        def __init__(self, phase, val, full):
            asked.append((phase.data.num_queries, len(val), len(full)))
            super().__init__(phase, val, full)

    monkeypatch.setattr(module, "Validator", Seen)
    model = module.train(make_corpus(60), "static-cpu", quick(training__epochs=1), quiet=True)
    assert asked == [(48, 12, 60)]
    assert model.num_train_queries == 60
    assert model.label_counts_L.tolist() == np.asarray(make_split(0, 60).positives.sum(0)).ravel().tolist()
