"""The contrastive loss against slow loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import dense, finite_differences, positives, similarities
from losses.oracle import contrastive

from primexmc.losses import Positives, contrastive_loss


def drawn_by(true, seed):
    """The column that each row meets; the same generator gives the loss the same."""
    return Positives.from_mask(true).draw(torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (7, 1), (6, 9), (30, 20)])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_value_and_gradient_by_the_oracle(shape, temperature):
    rng = np.random.default_rng(list(shape))
    for seed, several in enumerate((True, False)):
        sim, true = similarities(rng, *shape), positives(rng, *shape, several=several)
        generator = torch.Generator().manual_seed(seed)
        loss = contrastive_loss(sim, true, temperature=temperature, generator=generator)
        (gradient,) = torch.autograd.grad(loss, sim)
        value, by_hand = contrastive(sim.tolist(), true.tolist(), drawn_by(true, seed), temperature=temperature)
        assert loss.item() == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(gradient.numpy(), dense(by_hand, shape), atol=1e-10)


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(5)
    sim, true = similarities(rng, 5, 7), positives(rng, 5, 7)

    def loss(values):
        return contrastive_loss(values, true, generator=torch.Generator().manual_seed(3))

    (gradient,) = torch.autograd.grad(loss(sim), sim)
    np.testing.assert_allclose(gradient.numpy(), finite_differences(loss, sim).numpy(), atol=1e-6)


def test_the_other_positives_take_no_part():
    sim = torch.tensor([[0.9, 0.1, 0.5]], dtype=torch.float64)
    seen = {
        contrastive_loss(
            sim, torch.tensor([[1, 1, 0]]), temperature=1.0, generator=torch.Generator().manual_seed(seed)
        ).item()
        for seed in range(20)
    }
    alone = {contrastive_loss(sim[:, [p, 2]], torch.tensor([[1, 0]]), temperature=1.0).item() for p in (0, 1)}
    assert sorted(seen) == pytest.approx(sorted(alone)), "each in its turn, and against the negative alone"


def test_rows_that_count_nothing():
    sim = torch.tensor([[0.2, 0.9], [0.1, 0.2], [0.5, 0.5]], requires_grad=True)
    loss = contrastive_loss(sim, torch.tensor([[0, 0], [1, 1], [1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(np.log(2) / 3)
    assert torch.isfinite(sim.grad).all() and not sim.grad[:2].any()
    assert contrastive_loss(torch.zeros(0, 4), torch.zeros(0, 4)).item() == 0.0
    assert contrastive_loss(torch.zeros(2, 3), torch.zeros(2, 3)).item() == 0.0


def test_senseless_temperature():
    with pytest.raises(ValueError, match="temperature"):
        contrastive_loss(torch.zeros(1, 2), torch.ones(1, 2), temperature=0.0)
