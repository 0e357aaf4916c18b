"""How a phase begins, what a step changes, what a refresh changes: against loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from model.tiny import batch_of, static_encoder
from training.cases import make_corpus, make_phase, quick

from primexmc.losses.objective import Objective
from primexmc.training import loop
from primexmc.training.batches import BatchMaker
from primexmc.training.begin import begin_state
from primexmc.training.log import Log
from primexmc.training.loop import refresh, run_phase

CPU = torch.device("cpu")
CORPUS = make_corpus(50)
TRUE = CORPUS.train.positives.toarray() > 0


def begun(**values):
    torch.manual_seed(0)
    encoder = static_encoder(dropout=values.pop("encoder_dropout", -1.0))
    phase = make_phase(CORPUS, encoder, quick(**values))
    return phase, begin_state(phase, encoder, CPU)


def unit(encoder, texts):
    with torch.no_grad():
        return torch.nn.functional.normalize(encoder(batch_of(encoder, list(texts))), dim=1)


def slow_centroids(bank):
    rows = [[bank[q].double().numpy() for q in range(50) if TRUE[q, label]] for label in range(10)]
    return np.array([sum(row) / len(row) for row in rows])


def test_a_large_bank_is_kept_in_half_precision(monkeypatch):
    """And what is made of it is nearly the same."""
    monkeypatch.setattr("primexmc.training.state.LARGEST_FLOAT32_BANK", 4 * 50 * 16 - 1)
    phase, state = begun()
    assert state.query_bank_ND.dtype == torch.float16 and state.centroids.c_LD.dtype == torch.float32
    batch = one_step(phase, state)
    queries = unit(static_encoder(), CORPUS.train.texts)
    assert torch.allclose(state.query_bank_ND[batch.queries_Q].float(), queries[:20], atol=1e-3)
    refresh(phase, state)
    np.testing.assert_allclose(state.centroids.c_LD.numpy(), slow_centroids(state.query_bank_ND), atol=1e-3)
    assert sorted(np.unique(state.cluster_of_N)) == list(range(13))
    monkeypatch.setattr("primexmc.training.state.LARGEST_FLOAT32_BANK", 4 * 50 * 16)
    assert begun()[1].query_bank_ND.dtype == torch.float32


def test_the_beginning():
    """The untrained encoder's view of everything."""
    _, state = begun()
    untrained = static_encoder()
    assert torch.allclose(state.query_bank_ND, unit(untrained, CORPUS.train.texts), atol=1e-6)
    np.testing.assert_allclose(state.centroids.c_LD.numpy(), slow_centroids(state.query_bank_ND), atol=1e-6)
    assert state.centroids.has_L.all() and (state.epoch, state.position, state.step) == (0, 0, 0)
    counts = np.bincount(state.network.free_vector_of_L.numpy(), minlength=4)
    assert sorted(counts) == [2, 2, 3, 3]
    h = unit(untrained, CORPUS.labels.texts)
    alike = state.network.free_vector_of_L[:, None] == state.network.free_vector_of_L[None]
    others = ~torch.eye(10, dtype=torch.bool)
    s = h @ h.T
    assert s[alike & others].mean() > s[~alike].mean() + 0.1, "labels that share a free vector are alike"
    assert len(state.cluster_of_N) == 0, "before the first refresh batches are random"


def one_step(phase, state, step=0):
    batch = BatchMaker(phase.data, phase.settings, CPU).make(np.arange(20), step)
    objective = Objective(phase.settings.loss, prototypes=phase.settings.prototypes.enabled)
    loop._step(phase, state, objective, batch)
    return batch


@pytest.mark.parametrize("mode", ["epoch", "ema"])
def test_a_step_changes_bank_and_centroids(mode):
    phase, state = begun(prototypes__centroid_mode=mode, prototypes__ema_decay=0.75)
    bank, c = state.query_bank_ND.clone(), state.centroids.c_LD.clone()
    encoder_before = {name: value.clone() for name, value in state.network.state_dict().items()}
    batch = one_step(phase, state)
    queries = unit(static_encoder(), CORPUS.train.texts)  # as the encoder was during the step
    assert torch.allclose(state.query_bank_ND[:20], queries[:20], atol=1e-6)
    assert torch.equal(state.query_bank_ND[20:], bank[20:])
    several = 0
    for label in range(10):
        expected = c[label].double().numpy()
        met = [queries[q].double().numpy() for q in range(20) if TRUE[q, label]]
        if mode == "ema" and label in batch.labels_M.tolist():
            several += len(met) > 1
            expected = 0.75 * expected + 0.25 * sum(met) / len(met)
        np.testing.assert_allclose(state.centroids.c_LD[label].numpy(), expected, atol=1e-6)
    assert mode == "epoch" or several > 3, "a mean, not the last one"
    changed = [
        name for name, value in state.network.state_dict().items() if not torch.equal(value, encoder_before[name])
    ]
    assert "encoder.vectors_VD" in changed and "free_vectors_FD" in changed and "label_prototypes.qkv.weight" in changed
    assert "free_vector_of_L" not in changed and state.totals[2] == 1 and state.totals[0] > 0


def test_centroids_do_not_learn_through_the_loss():
    phase, state = begun()
    one_step(phase, state)
    assert not state.centroids.c_LD.requires_grad and not state.query_bank_ND.requires_grad


def test_the_bank_takes_what_dropout_left(monkeypatch):
    """In training mode: the step's own embeddings, not another pass."""
    phase, state = begun(encoder_dropout=0.5)
    state.network.train()
    one_step(phase, state)
    assert not torch.allclose(state.query_bank_ND[:20], unit(static_encoder(), CORPUS.train.texts)[:20], atol=1e-3)


@pytest.mark.parametrize("mode", ["epoch", "ema"])
def test_a_refresh(mode):
    phase, state = begun(prototypes__centroid_mode=mode, sampling__smallest_cluster=2, training__epochs=60)
    state.query_bank_ND.copy_(torch.nn.functional.normalize(torch.randn_like(state.query_bank_ND), dim=1))
    before = state.centroids.c_LD.clone()
    for epoch, size in ((1, 2), (2, 4), (5, 8), (50, 8)):
        state.epoch = epoch
        refresh(phase, state)
        counts = np.bincount(state.cluster_of_N)
        assert len(counts) == -(-50 // size) and counts.max() <= size and counts.max() - counts.min() <= 1
    expected = before.numpy() if mode == "ema" else slow_centroids(state.query_bank_ND)
    np.testing.assert_allclose(state.centroids.c_LD.numpy(), expected, atol=1e-6)


def test_random_batches_need_no_clusters():
    phase, state = begun(sampling__batches="random")
    state.epoch = 3
    refresh(phase, state)
    assert len(state.cluster_of_N) == 0


def test_when_the_loop_refreshes_trains_and_saves(tmp_path, monkeypatch):
    phase, state = begun(sampling__refresh=0.4)
    refreshed, modes, saved = [], set(), []
    monkeypatch.setattr(loop, "refresh", lambda phase, state: refreshed.append(state.epoch))
    step = loop._step
    monkeypatch.setattr(loop, "_step", lambda *args: (modes.add(args[1].network.training), step(*args)))
    with Log(tmp_path / "metrics.jsonl", quiet=True) as log:
        run_phase(phase, state, log, None, lambda: saved.append((state.epoch, state.position, state.step)))
    assert refreshed == [2, 4] and modes == {True}
    assert saved == [(step // 4, step % 4 + 1, step + 1) for step in range(20)]
    assert (state.epoch, state.position, state.step) == (5, 0, 20)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5]


def test_what_the_log_calls_loss_is_the_mean_of_the_epochs_steps(tmp_path, monkeypatch):
    phase, state = begun(training__epochs=2)
    seen = []
    call = Objective.__call__

    def keep(self, *args):
        loss, stats = call(self, *args)
        seen.append(loss.item())
        return loss, stats

    monkeypatch.setattr(Objective, "__call__", keep)
    with Log(tmp_path / "metrics.jsonl", quiet=True) as log:
        run_phase(phase, state, log, None, lambda: None)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["loss"] for row in rows] == pytest.approx([np.mean(seen[:4]), np.mean(seen[4:])], abs=1e-5)
