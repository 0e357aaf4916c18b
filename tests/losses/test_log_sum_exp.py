"""Log-sum-exp over negatives, whole and in parts, against slow loops; and that the parts keep no matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from losses.cases import positives

from primexmc.config import LossSettings
from primexmc.losses import Objective, Positives, log_sum_exp
from primexmc.losses.log_sum_exp import lse_in_parts, lse_of_matrix


def unit(rng, num, dim=5, dtype=torch.float64):
    rows = rng.normal(size=(num, dim))
    return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=dtype, requires_grad=True)


def slow_lse(rows, columns, true, temperature):
    """By loops; None where a row has no negative."""
    found = []
    for q, row in enumerate(rows.tolist()):
        powers = [
            math.exp(sum(a * b for a, b in zip(row, column, strict=True)) / temperature)
            for m, column in enumerate(columns.tolist())
            if not true[q][m]
        ]
        found.append(math.log(sum(powers)) if powers else None)
    return found


@pytest.mark.parametrize("size", [1, 2, 5, 9, 100])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_values(size, temperature):
    rng = np.random.default_rng(size)
    rows, columns, true = unit(rng, 7), unit(rng, 9), positives(rng, 7, 9)
    pairs = Positives.from_mask(true)
    expected = slow_lse(rows, columns, true.tolist(), temperature)
    parts = lse_in_parts(rows, columns, pairs, temperature, size)
    for lse, s_E in (parts, lse_of_matrix(rows @ columns.T, pairs, temperature)):
        for value, slow in zip(lse.tolist(), expected, strict=True):
            assert value < -1e20 if slow is None else value == pytest.approx(slow, abs=1e-10)
        by_hand = [(rows[q] @ columns[m]).item() / temperature for q, m in true.nonzero().tolist()]
        assert s_E.tolist() == pytest.approx(by_hand, abs=1e-10)


@pytest.mark.parametrize("size", [1, 4, 9, 100])
def test_gradients_by_the_slow_formula(size):
    """d lse / d s is the softmax over the negatives: by loops, not by autograd."""
    rng = np.random.default_rng(size)
    temperature, weight_Q = 0.3, torch.tensor(rng.normal(size=6))
    rows, columns, true = unit(rng, 6), unit(rng, 9), positives(rng, 6, 9)
    weight_Q[1] = 0  # the row whose labels are all true
    lse_Q, _ = lse_in_parts(rows, columns, Positives.from_mask(true), temperature, size)
    gradients = torch.autograd.grad((lse_Q * weight_Q).sum(), (rows, columns))
    by_rows, by_columns = np.zeros((6, 5)), np.zeros((9, 5))
    h, z = rows.detach().numpy(), columns.detach().numpy()
    for q in range(6):
        near = [m for m in range(9) if not true[q][m]]
        powers = {m: math.exp(h[q] @ z[m] / temperature) for m in near}
        for m in near:
            share = weight_Q[q].item() * powers[m] / sum(powers.values()) / temperature
            by_rows[q] += share * z[m]
            by_columns[m] += share * h[q]
    np.testing.assert_allclose(gradients[0].numpy(), by_rows, atol=1e-10)
    np.testing.assert_allclose(gradients[1].numpy(), by_columns, atol=1e-10)


@pytest.mark.parametrize("name", ["softmax", "contrastive"])
def test_the_objective_is_the_same_in_parts(name, monkeypatch):
    rng = np.random.default_rng(3)
    q, labels, true = unit(rng, 8), unit(rng, 12), positives(rng, 8, 12)
    pairs = Positives.from_mask(true)
    results = []
    for cells in (2**24, 20):
        monkeypatch.setattr(log_sum_exp, "CELLS_AT_ONCE", {"cpu": cells})
        objective = Objective(LossSettings(name=name), prototypes=False)
        generator = torch.Generator().manual_seed(0)
        loss, stats = objective(q, labels, None, pairs, pairs.transposed(), generator)
        results.append((loss, *torch.autograd.grad(loss, (q, labels)), stats["violators"]))
    for whole, parts in zip(*results, strict=True):
        np.testing.assert_allclose(parts.detach().numpy(), whole.detach().numpy(), atol=1e-10)


def test_no_matrix_is_kept(monkeypatch):
    """What waits for the backward pass grows with Q + M, not with Q x M."""
    rng = np.random.default_rng(4)
    q, labels = unit(rng, 300, dtype=torch.float32), unit(rng, 4000, dtype=torch.float32)
    true = torch.zeros(300, 4000, dtype=torch.int64)
    true[torch.arange(300), torch.arange(300)] = 1
    pairs = Positives.from_mask(true)
    kept = {}
    for cells in (2**24, 300 * 100):
        monkeypatch.setattr(log_sum_exp, "CELLS_AT_ONCE", {"cpu": cells})
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, sizes=sizes: sizes.append(x.numel()) or x, lambda x: x):
            objective = Objective(LossSettings(name="softmax", reverse_weight=0.0), prototypes=False)
            objective(q, labels, None, pairs, pairs.transposed())
        kept[cells] = max(sizes)
    assert kept[2**24] >= 300 * 4000, "the guard guards"
    assert kept[300 * 100] <= 4000 * 5
