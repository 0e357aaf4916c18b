"""R against slow loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import dense, finite_differences, positives, similarities
from losses.oracle import regulariser

from primexmc.losses import Positives, prototype_regulariser


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (7, 1), (6, 9), (30, 20)])
@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
def test_value_and_gradients_by_the_oracle(shape, k, margin):
    rng = np.random.default_rng([*shape, k])
    text, proto, true = similarities(rng, *shape), similarities(rng, *shape), positives(rng, *shape)
    drawn = Positives.from_mask(true).draw(torch.Generator().manual_seed(2)).tolist()
    loss = prototype_regulariser(
        text, proto, true, margin=margin, num_negatives=k, generator=torch.Generator().manual_seed(2)
    )
    by_text, by_proto = torch.autograd.grad(loss, (text, proto))
    value, *by_hand = regulariser(text.tolist(), proto.tolist(), true.tolist(), drawn, margin=margin, k=k)
    assert loss.item() == pytest.approx(value, abs=1e-12)
    for gradient, expected in zip((by_text, by_proto), by_hand, strict=True):
        np.testing.assert_allclose(gradient.numpy(), dense(expected, shape), atol=1e-12)


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(5)
    text, proto, true = similarities(rng, 4, 6), similarities(rng, 4, 6), positives(rng, 4, 6, several=False)
    (gradient,) = torch.autograd.grad(prototype_regulariser(text, proto, true, num_negatives=3), text)
    expected = finite_differences(
        lambda values: prototype_regulariser(values, proto.detach(), true, num_negatives=3), text
    )
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), atol=1e-6)


def test_nothing_violates():
    """Prototypes well ahead of the texts: 0, not 0/0."""
    text = torch.zeros(2, 3, requires_grad=True)
    proto = torch.tensor([[0.9, -0.9, -0.9], [-0.9, 0.9, -0.9]])
    loss = prototype_regulariser(text, proto, torch.tensor([[1, 0, 0], [0, 1, 0]]))
    loss.backward()
    assert loss.item() == 0.0
    assert not text.grad.any()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_nothing_to_compare(shape):
    assert prototype_regulariser(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)).item() == 0.0


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="differ"):
        prototype_regulariser(torch.zeros(2, 4), torch.zeros(2, 3), torch.ones(2, 3))
