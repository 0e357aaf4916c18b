"""The decoupled softmax loss against slow loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import dense, finite_differences, positives, similarities
from losses.oracle import decoupled_softmax

from primexmc.losses import Positives, decoupled_softmax_loss


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (7, 1), (6, 9), (30, 20)])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_value_and_gradient_by_the_oracle(shape, temperature):
    rng = np.random.default_rng(list(shape))
    for several in (True, False):
        sim, true = similarities(rng, *shape), positives(rng, *shape, several=several)
        loss = decoupled_softmax_loss(sim, true, temperature=temperature)
        (gradient,) = torch.autograd.grad(loss, sim)
        value, by_hand = decoupled_softmax(sim.tolist(), true.tolist(), temperature=temperature)
        assert loss.item() == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(gradient.numpy(), dense(by_hand, shape), atol=1e-10)


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(5)
    sim, true = similarities(rng, 5, 7), positives(rng, 5, 7)
    (gradient,) = torch.autograd.grad(decoupled_softmax_loss(sim, true), sim)
    expected = finite_differences(lambda values: decoupled_softmax_loss(values, true), sim)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), atol=1e-6)


def test_a_positive_does_not_compete_with_another():
    sim = torch.tensor([[0.9, 0.1, 0.5]], dtype=torch.float64)
    both = decoupled_softmax_loss(sim, torch.tensor([[1, 1, 0]]), temperature=1.0).item()
    alone = [decoupled_softmax_loss(sim[:, [p, 2]], torch.tensor([[1, 0]]), temperature=1.0).item() for p in (0, 1)]
    assert both == pytest.approx(sum(alone) / 2)


def test_rows_that_count_nothing():
    """No positive or no negative: 0 and no NaN, and still a row of the mean."""
    sim = torch.tensor([[0.2, 0.9], [0.1, 0.2], [0.5, 0.5]], requires_grad=True)
    loss = decoupled_softmax_loss(sim, torch.tensor([[0, 0], [1, 1], [1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(np.log(2) / 3)
    assert torch.isfinite(sim.grad).all() and not sim.grad[:2].any()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_safe_however_large(scale):
    sim = (torch.tensor([[1.0, -1.0, 0.5], [-1.0, 1.0, 1.0]]) * scale).requires_grad_()
    loss = decoupled_softmax_loss(sim, torch.tensor([[1, 0, 0], [1, 0, 0]]), temperature=0.01)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(sim.grad).all()


def test_low_precision_and_transposed():
    rng = np.random.default_rng(2)
    true = positives(rng, 8, 30)
    sim = similarities(rng, 8, 30).detach().bfloat16()
    built = Positives.from_mask(true)
    value, _ = decoupled_softmax(sim.T.tolist(), true.T.tolist())
    loss = decoupled_softmax_loss(sim.T, built.transposed())
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_nothing_to_compare(shape):
    assert decoupled_softmax_loss(torch.zeros(shape), torch.zeros(shape)).item() == 0.0


def test_senseless_temperature():
    with pytest.raises(ValueError, match="temperature"):
        decoupled_softmax_loss(torch.zeros(1, 2), torch.ones(1, 2), temperature=0.0)
