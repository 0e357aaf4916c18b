"""The dynamic margin loss against slow loops: value, gradient, and the corners of its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from losses.cases import dense, finite_differences, positives, similarities
from losses.oracle import dynamic_margin

from primexmc.losses import Positives, dynamic_margin_loss

SHAPES = [(1, 1), (1, 6), (7, 1), (6, 9), (9, 40), (12, 5)]
FORMS = [("max", True), ("max", False), ("inverted", True), ("inverted", False)]


def drawn_columns(true, seed):
    """The positives that the loss will meet: true ones, whatever the draw."""
    columns = Positives.from_mask(true).draw(torch.Generator().manual_seed(seed)).tolist()
    assert all(row[column] for row, column in zip(true.tolist(), columns, strict=True) if any(row))
    return columns


def assert_agrees(sim, true, seed=0, **options):
    names = {"margin_min": "low", "margin_max": "high", "num_negatives": "k", "softmax_tau": "tau"}
    names |= {"tie_gradient": "tie", "margin_form": "form", "detach_margin": "detach"}
    loss = dynamic_margin_loss(sim, true, generator=torch.Generator().manual_seed(seed), **options)
    (gradient,) = torch.autograd.grad(loss, sim)
    expected = dynamic_margin(
        sim.tolist(),
        true.tolist(),
        drawn_columns(true, seed),
        **{names[name]: value for name, value in options.items()},
    )
    assert loss.item() == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(gradient.numpy(), dense(expected[1], sim.shape), atol=1e-11)
    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("form", "detach"), FORMS)
@pytest.mark.parametrize("tau", [0.1, None])
def test_value_and_gradient_by_the_oracle(shape, form, detach, tau):
    rng = np.random.default_rng([*shape, tau is None])
    for k, tie, grid in itertools.product([1, 3, 100], [0.0, 0.5, 1.0], [None, 0.05]):
        sim, true = similarities(rng, *shape, grid=grid), positives(rng, *shape)
        options = {"num_negatives": k, "softmax_tau": tau, "tie_gradient": tie, "margin_form": form}
        assert_agrees(sim, true, detach_margin=detach, **options)


@pytest.mark.parametrize(
    ("low", "high", "tau"), [(0.0, 0.0, 0.1), (0.2, 0.2, 0.05), (0.05, 0.6, 1.0), (0.0, 2.0, None)]
)
def test_other_margins(low, high, tau):
    rng = np.random.default_rng(3)
    assert_agrees(
        similarities(rng, 8, 12),
        positives(rng, 8, 12),
        margin_min=low,
        margin_max=high,
        softmax_tau=tau,
        tie_gradient=0.3,
    )


@pytest.mark.parametrize(
    ("form", "detach", "tau"), [("max", False, 0.1), ("max", False, None), ("inverted", False, 0.1)]
)
def test_gradient_by_finite_differences(form, detach, tau):
    """Only without detaching is the gradient that of the value; far enough from kinks, which random values are."""
    rng = np.random.default_rng(5)
    sim, true = similarities(rng, 5, 7), positives(rng, 5, 7, several=False)

    def loss(values):
        return dynamic_margin_loss(
            values, true, softmax_tau=tau, margin_form=form, detach_margin=detach, num_negatives=5
        )

    (gradient,) = torch.autograd.grad(loss(sim), sim)
    np.testing.assert_allclose(gradient.numpy(), finite_differences(loss, sim).numpy(), atol=1e-6)
    assert gradient.abs().max() > 0.01


@pytest.mark.parametrize(
    ("d", "value"),
    [(0.5, 0.0), (0.3, 0.0), (0.2, 0.0), (0.05, 0.05), (0.0, 0.1), (-0.05, 0.15), (-0.2, 0.4), (-0.5, 0.8)],
)
def test_the_values_that_the_method_lists(d, value):
    sim = torch.tensor([[0.5, 0.5 - d]], dtype=torch.float64)
    assert dynamic_margin_loss(sim, torch.tensor([[1, 0]])).item() == pytest.approx(value, abs=1e-12)


def test_inverted_rises_with_d_below_the_smallest_margin():
    sim = torch.tensor([[0.5, 0.44]], dtype=torch.float64, requires_grad=True)
    loss = dynamic_margin_loss(sim, torch.tensor([[1, 0]]), margin_form="inverted", softmax_tau=None)
    loss.backward()
    assert loss.item() == pytest.approx(0.16)
    assert sim.grad.tolist() == [[1.0, -1.0]]


def test_a_tie_passes_its_share_of_the_plain_mean():
    for share in (0.0, 0.5, 1.0):
        sim = torch.tensor([[0.5, 0.3]], dtype=torch.float64, requires_grad=True)
        loss = dynamic_margin_loss(sim, torch.tensor([[1, 0]]), softmax_tau=None, tie_gradient=share)
        loss.backward()
        assert loss.item() == 0.0
        assert sim.grad.tolist() == [[-share, share]]


def test_a_tie_takes_no_part_in_the_softmax_weights():
    """A second negative at a tie changes neither value nor gradient, and gets none, whatever the share."""
    sim = torch.tensor([[0.5, 0.45, 0.3]], dtype=torch.float64, requires_grad=True)
    loss = dynamic_margin_loss(sim, torch.tensor([[1, 0, 0]]), tie_gradient=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(0.05)
    np.testing.assert_allclose(sim.grad.numpy(), [[-1.0, 1.0, 0.0]], atol=1e-12)


def test_a_tie_is_exact_in_float32_and_bf16():
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        negative = torch.rand(1, 2000, generator=generator) * 0.19 + 0.25
        sim = torch.cat([torch.full((1, 1), 0.6), negative], 1).to(dtype).requires_grad_()
        true = torch.zeros(1, 2001, dtype=torch.bool)
        true[0, 0] = True
        loss = dynamic_margin_loss(sim, true, softmax_tau=None, num_negatives=2000)
        loss.backward()
        assert loss.item() == 0.0
        assert not sim.grad.any()


@pytest.mark.parametrize("tau", [0.1, None])
@pytest.mark.parametrize("tie", [0.0, 0.5])
def test_rows_that_count_nothing(tau, tie):
    """No positive, no negative, no violator: 0, without NaN, and still a row of the mean."""
    sim = torch.tensor([[0.2, 0.9, 0.1], [0.1, 0.2, 0.3], [0.9, 0.0, -0.9], [0.1, 0.6, 0.0]], dtype=torch.float64)
    sim.requires_grad_()
    true = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 0, 0], [1, 0, 0]])
    loss = dynamic_margin_loss(sim, true, softmax_tau=tau, tie_gradient=tie, num_negatives=1)
    loss.backward()
    assert loss.item() == pytest.approx(0.8 / 4)
    assert torch.isfinite(sim.grad).all()
    assert not sim.grad[:3].any()
    np.testing.assert_allclose(sim.grad[3].numpy(), [-0.25, 0.25, 0.0], atol=1e-12)


def test_true_columns_are_never_negatives():
    """However similar: with all of them far above, they leave no trace in the loss of the drawn one."""
    sim = torch.tensor([[0.99, 0.98, 0.97, 0.1]], dtype=torch.float64, requires_grad=True)
    for seed in range(10):
        loss = dynamic_margin_loss(sim, torch.tensor([[1, 1, 1, 0]]), generator=torch.Generator().manual_seed(seed))
        assert loss.item() == 0.0


def test_many_violators_are_summed_to_a_weighted_mean():
    rng = np.random.default_rng(0)
    *_, violators = assert_agrees(similarities(rng, 40, 300), positives(rng, 40, 300), num_negatives=100)
    assert violators > 500


def test_positive_forms_agree():
    rng = np.random.default_rng(1)
    sim, true = similarities(rng, 6, 9), positives(rng, 6, 9)
    forms = [true, true.bool(), true.float(), Positives.from_mask(true)]
    losses = [dynamic_margin_loss(sim, form, generator=torch.Generator().manual_seed(3)).item() for form in forms]
    assert len(set(losses)) == 1


def test_low_precision_is_computed_in_float32():
    rng = np.random.default_rng(2)
    sim, true = similarities(rng, 8, 30).detach().bfloat16().requires_grad_(), positives(rng, 8, 30, several=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = dynamic_margin_loss(sim, true)
    loss.backward()
    exact = dynamic_margin_loss(sim.detach().double(), true)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)
    assert sim.grad.dtype == torch.bfloat16 and torch.isfinite(sim.grad).all()


def test_transposed_similarities():
    rng = np.random.default_rng(4)
    sim, true = similarities(rng, 6, 9), positives(rng, 6, 9)
    loss = dynamic_margin_loss(
        sim.T, Positives.from_mask(true).transposed(), generator=torch.Generator().manual_seed(1)
    )
    (gradient,) = torch.autograd.grad(loss, sim)
    expected = dynamic_margin(sim.T.tolist(), true.T.tolist(), drawn_columns(true.T, 1))
    assert loss.item() == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(gradient.numpy().T, dense(expected[1], (9, 6)), atol=1e-11)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing_to_compare(shape):
    sim = torch.zeros(shape, requires_grad=True)
    loss = dynamic_margin_loss(sim, torch.zeros(shape))
    loss.backward()
    assert loss.item() == 0.0


@pytest.mark.parametrize(
    "options",
    [{"margin_form": "min"}, {"margin_min": 0.4}, {"margin_min": -0.1}, {"num_negatives": 0}, {"softmax_tau": 0.0}],
)
def test_senseless_options(options):
    with pytest.raises(ValueError, match=next(iter(options)).split("_")[0]):
        dynamic_margin_loss(torch.zeros(2, 3), torch.ones(2, 3), **options)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must be equal"):
        dynamic_margin_loss(torch.zeros(2, 3), torch.ones(3, 2))
    with pytest.raises(ValueError, match="queries x labels"):
        dynamic_margin_loss(torch.zeros(2, 3), torch.ones(2))
