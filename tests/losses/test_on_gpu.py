"""Losses on a CUDA device: the same numbers as on the CPU, and the CPU never waits for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import positives, similarities
from scipy.sparse import csr_matrix

from primexmc.config import LossSettings
from primexmc.losses import (
    Objective,
    Positives,
    contrastive_loss,
    decoupled_softmax_loss,
    dynamic_margin_loss,
    log_sum_exp,
    prototype_regulariser,
)

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

LOSSES = {
    "margin": lambda sim, other, true, g: dynamic_margin_loss(sim, true, generator=g, num_negatives=50),
    "mean": lambda sim, other, true, g: dynamic_margin_loss(sim, true, generator=g, softmax_tau=None, tie_gradient=0.5),
    "inverted": lambda sim, other, true, g: dynamic_margin_loss(sim, true, generator=g, margin_form="inverted"),
    "softmax": lambda sim, other, true, g: decoupled_softmax_loss(sim, true),
    "contrastive": lambda sim, other, true, g: contrastive_loss(sim, true, generator=g),
    "regulariser": lambda sim, other, true, g: prototype_regulariser(other, sim, true, generator=g),
}


def case(seed=0, num_rows=200, num_columns=500):
    rng = np.random.default_rng(seed)
    true = positives(rng, num_rows, num_columns)
    return similarities(rng, num_rows, num_columns), similarities(rng, num_rows, num_columns), csr_matrix(true.numpy())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_value_and_gradient_as_on_the_cpu(name, dtype):
    sim, other, true = case()
    results = []
    for device, precision in (("cpu", torch.float64), ("cuda", dtype)):
        s, o = (x.detach().to(dtype).to(device, precision).requires_grad_() for x in (sim, other))
        generator = torch.Generator().manual_seed(1)  # of the CPU for both: the same draws
        loss = LOSSES[name](s, o, Positives.from_csr(true, device), generator)
        (gradient,) = torch.autograd.grad(loss, s)
        results.append((loss.item(), gradient.cpu().double()))
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    assert results[0][0] == pytest.approx(results[1][0], rel=tolerance)
    if dtype == torch.float64 or name not in ("margin", "mean", "inverted"):  # float32 moves pairs over the kinks
        scale = results[0][1].abs().max().item()
        assert (results[0][1] - results[1][1]).abs().max().item() <= 10 * tolerance * scale


@pytest.mark.parametrize("name", ["margin", "softmax", "contrastive", "softmax in parts"])
@pytest.mark.parametrize("autocast", [True, False])
def test_the_objective_never_waits(name, autocast, monkeypatch):
    """From scipy's matrix on the CPU to the gradients, with synchronisation forbidden."""
    name, _, in_parts = name.partition(" ")
    if in_parts:
        monkeypatch.setattr(log_sum_exp, "CELLS_AT_ONCE", {"cuda": 200 * 128})
    *_, true = case()
    q, labels, z = (torch.randn(n, 64, device="cuda", requires_grad=True) for n in (200, 500, 500))
    objective, generator = Objective(LossSettings(name=name), prototypes=True), torch.Generator("cuda").manual_seed(0)
    Positives.from_csr(true, "cuda")  # the first pinned allocation
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            built = Positives.from_csr(true, "cuda")
            unit = [torch.nn.functional.normalize(x, dim=1) for x in (q, labels, z)]
            loss, stats = objective(*unit, built, built.transposed(), generator)
            loss.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.isfinite(value) for value in stats.values())
    assert all(x.grad is not None and torch.isfinite(x.grad).all() and x.grad.any() for x in (q, labels, z))


def test_the_objective_as_on_the_cpu():
    *_, true = case()
    generator = torch.Generator().manual_seed(0)
    vectors = [
        torch.nn.functional.normalize(torch.randn(n, 64, generator=generator, dtype=torch.float64), dim=1)
        for n in (200, 500, 500)
    ]
    results = []
    for device in ("cpu", "cuda"):
        leaves = [x.to(device).requires_grad_() for x in vectors]
        built = Positives.from_csr(true, device)
        draws = torch.Generator().manual_seed(4)
        loss, _ = Objective(LossSettings(), prototypes=True)(*leaves, built, built.transposed(), draws)
        results.append([loss.detach().cpu(), *(g.cpu() for g in torch.autograd.grad(loss, leaves))])
    for on_cpu, on_gpu in zip(*results, strict=True):
        torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-9, atol=1e-12)
