"""Mined negatives: the search against loops, when it happens, and what a resumed training makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import static_encoder
from training.cases import THINGS, assert_same_tensors, make_corpus, make_phase, quick, tensors_of

from primexmc.training import loop
from primexmc.training.begin import begin_state
from primexmc.training.log import Log
from primexmc.training.loop import run_phase
from primexmc.training.mining import mine
from primexmc.training.train import train

CORPUS = make_corpus(40)
MINED = {"sampling__negatives": "mined", "sampling__mining": 0.4, "sampling__mined_depth": 3}


def begun(**values):
    torch.manual_seed(0)
    encoder = static_encoder()
    phase = make_phase(CORPUS, encoder, quick(**(MINED | values)))
    return phase, begin_state(phase, encoder, torch.device("cpu"))


@pytest.mark.parametrize("prototypes", [False, True])
def test_the_nearest_that_are_wrong(prototypes):
    phase, state = begun(prototypes__enabled=prototypes)
    table = mine(phase, state)
    network = state.network.eval()
    with torch.no_grad():
        h_LD = torch.cat([
            network.encoder(batch_of_label(phase, label)) for label in range(len(THINGS))
        ])  # fmt: skip
        z_LD = network.prototypes(h_LD, torch.arange(len(THINGS)), state.centroids).double()
    for query in range(40):
        true = set(CORPUS.train.positives[[query]].indices.tolist())
        scores = {label: float(state.query_bank_ND[query].double() @ z_LD[label]) for label in range(len(THINGS))}
        wrong = sorted((label for label in scores if label not in true), key=lambda label: -scores[label])
        assert [scores[label] for label in table[query]] == pytest.approx([scores[n] for n in wrong[:3]], abs=1e-5)
        assert not true & set(table[query].tolist())


def batch_of_label(phase, label):
    from primexmc.model.token_batch import TokenBatch

    return TokenBatch.from_arrays(*phase.data.label_tokens.take(np.array([label])), torch.device("cpu"))


def test_it_happens_when_it_is_due_and_the_batches_meet_it(tmp_path, monkeypatch):
    phase, state = begun()
    searched, met = [], []

    def table(phase, state):
        searched.append(state.epoch)
        return np.full((40, 1), state.epoch, dtype=np.int32)  # label 2, then label 4

    step = loop._step
    monkeypatch.setattr(loop, "mine", table)
    monkeypatch.setattr(
        loop, "_step", lambda *args: (met.append((args[1].epoch, args[3].labels_M.tolist())), step(*args))
    )
    with Log(tmp_path / "metrics.jsonl", quiet=True) as log:
        run_phase(phase, state, log, None, lambda: None)
    assert searched == [2, 4]
    assert all(2 in labels for epoch, labels in met if epoch in (2, 3))
    assert all(4 in labels for epoch, labels in met if epoch == 4)


def test_a_resumed_training_goes_on_with_the_same_table(tmp_path, monkeypatch):
    from primexmc.training.saver import Interrupted, Saver

    values = quick(**MINED) | {"encoder.name": "static", "training.checkpoint_every_s": 0.0}
    train(CORPUS, "static-cpu", values, out=tmp_path / "whole", quiet=True)
    real, calls = Saver.save_if_due, []

    def stopping(self, phase, state):
        calls.append(state.step)
        self._stop = len(calls) == 8  # after the search before epoch 2, before the one before epoch 4
        real(self, phase, state)

    monkeypatch.setattr(Saver, "save_if_due", stopping)
    with pytest.raises(Interrupted):
        train(CORPUS, "static-cpu", values, out=tmp_path / "parts", quiet=True)
    train(CORPUS, "static-cpu", values, out=tmp_path / "parts", quiet=True, resume=True)
    assert_same_tensors(tensors_of(tmp_path / "parts"), tensors_of(tmp_path / "whole"))
