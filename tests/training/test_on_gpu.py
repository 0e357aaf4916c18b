"""Training on a CUDA device: the CPU never waits within a step, a seed is a run, a stopped run goes on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import save_hugging_face, static_encoder
from training.cases import losses_of, make_corpus, make_phase, quick

from primexmc.config import EncoderSettings
from primexmc.evaluation.evaluate import evaluate
from primexmc.losses.objective import Objective
from primexmc.model.encoder import load_encoder
from primexmc.model.model import PrimeModel
from primexmc.training import loop
from primexmc.training.batches import BatchMaker
from primexmc.training.begin import begin_state
from primexmc.training.log import Log
from primexmc.training.optimiser import set_learning_rates
from primexmc.training.phase import Phase
from primexmc.training.saver import Interrupted, Saver
from primexmc.training.train import train

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
DEVICE = "cuda"


@pytest.fixture(params=["static", "bert", "distilbert", "roberta"])
def encoder(request, tmp_path):
    if request.param == "static":
        return static_encoder(dropout=0.1)
    return load_encoder(EncoderSettings(name=str(save_hugging_face(tmp_path, request.param))))


@pytest.mark.parametrize("mode", ["epoch", "ema"])
@pytest.mark.parametrize("loss", ["margin", "softmax"])
def test_the_cpu_never_waits_within_a_step(encoder, mode, loss):
    """From the batch's queries to the new parameters, with synchronisation forbidden."""
    corpus, device = make_corpus(200), torch.device(DEVICE)
    values = quick(prototypes__centroid_mode=mode, loss__name=loss, prototypes__drop_centroid=0.2)
    encoder.to(device)
    made = make_phase(corpus, encoder, values)
    phase = Phase(made.name, made.settings, made.data, made.last_epoch, bf16=True)
    state = begin_state(phase, encoder, device)
    state.network.train()
    objective = Objective(phase.settings.loss, prototypes=True)
    maker = BatchMaker(phase.data, phase.settings, device)
    rows = np.random.default_rng(0).permutation(200)

    def step(number):
        batch = maker.make(rows[number * 40 : number * 40 + 40], number)
        set_learning_rates(state.optimiser, 0.5)
        loop._step(phase, state, objective, batch)

    step(0)  # the first one makes the optimiser's moments
    step(1)
    before = {name: value.clone() for name, value in state.network.state_dict().items()}
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(2)
        step(3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    after = state.network.state_dict()
    assert torch.isfinite(state.totals).all() and state.totals[2] == 4
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(value).all() for value in after.values())


PARTS = {
    "mined": {"sampling__negatives": "mined", "sampling__mining": 0.0},
    "pool": {"sampling__negatives": "pool", "sampling__pool_size": 4, "prototypes__centroid_mode": "ema"},
    "all in parts": {"sampling__negatives": "all", "training__texts_at_once": 8, "prototypes__enabled": False},
    "more queries": {"sampling__queries_per_label": 2, "prototypes__centroid_mode": "ema"},
    "sum": {"prototypes__combine": "sum"},
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("loss", ["softmax", "contrastive"])
def test_every_part_trains(encoder, name, loss, tmp_path):
    """A whole phase with each source of labels; what it learned is finite and something."""
    device = torch.device(DEVICE)
    encoder.to(device)
    made = make_phase(make_corpus(100), encoder, quick(loss__name=loss, training__epochs=3, **PARTS[name]))
    phase = Phase(made.name, made.settings, made.data, made.last_epoch, bf16=True)
    state = begin_state(phase, encoder, device)
    before = {key: value.clone() for key, value in state.network.state_dict().items()}
    with Log(tmp_path / "metrics.jsonl", quiet=True) as log:
        loop.run_phase(phase, state, log, None, lambda: None)
    after = state.network.state_dict()
    assert state.mined_NK.size > 0 if name == "mined" else state.mined_NK.size == 0
    assert any(not torch.equal(before[key], after[key]) for key in before)
    assert all(torch.isfinite(value).all() for value in after.values())


@pytest.fixture(params=["static", "bert"])
def values(request, tmp_path):
    chosen = quick(training__device=DEVICE, training__epochs=4, training__validate_every=0)
    if request.param == "bert":
        chosen |= {"encoder.name": str(save_hugging_face(tmp_path / "bert", "bert")), "training.learning_rate": 1e-3}
    return chosen


def run(place, values, **how):
    return train(make_corpus(200), "static-cpu", values, out=place, quiet=True, **how)


@pytest.mark.parametrize("precision", ["fp32", "auto"])
def test_the_same_seed_twice(tmp_path, values, precision):
    """Sums on a GPU may be added up in another order: in the first epoch that is rounding, and it grows from there."""
    for place in ("one", "two"):
        run(tmp_path / place, values | {"training.precision": precision})
    run(tmp_path / "three", values | {"training.precision": precision, "training.seed": 5})
    one, two, three = (np.array(losses_of(tmp_path / place)) for place in ("one", "two", "three"))
    print(f"{precision}: largest relative difference of the losses {np.max(np.abs(one - two) / one):.1e}")
    np.testing.assert_allclose(two[0], one[0], rtol=1e-3)
    np.testing.assert_allclose(two, one, rtol=1e-3 if precision == "fp32" else 5e-2)
    assert np.abs(three[0] - one[0]) > 10 * np.abs(two[0] - one[0])


def test_stopped_and_resumed(tmp_path, values, monkeypatch):
    run(tmp_path / "whole", values)
    ask = Saver.save_if_due

    def stop(self, phase, state):
        self._stop = state.step == 20
        ask(self, phase, state)

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "save_if_due", stop)
        with pytest.raises(Interrupted):
            run(tmp_path / "parts", values)
    run(tmp_path / "parts", values, resume=True)
    parts, whole = losses_of(tmp_path / "parts"), losses_of(tmp_path / "whole")
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-3)
    np.testing.assert_allclose(parts, whole, rtol=5e-2)


def test_it_learns_as_on_the_cpu(tmp_path, values):
    values |= {"training.epochs": 12, "training.precision": "fp32", "encoder.dropout": 0.0, "prototypes.dropout": 0.0}
    values |= {"prototypes.drop_centroid": 0.0, "prototypes.drop_free_vector": 0.0}
    for device in ("cpu", DEVICE):
        run(tmp_path / device.replace(":", ""), values | {"training.device": device})
    on_cpu, on_gpu = losses_of(tmp_path / "cpu"), losses_of(tmp_path / DEVICE)
    assert on_gpu[0] == pytest.approx(on_cpu[0], rel=0.2), "free vectors are drawn by other generators"
    assert on_gpu[-1] < 0.8 * on_gpu[0]
    model = PrimeModel.load(tmp_path / DEVICE, device=DEVICE)
    assert evaluate(model, make_corpus(200))["P@1"] > 60
