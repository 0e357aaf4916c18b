"""A softmax over all labels, of which only a batch's have a gradient: against plain loops in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.config import LossSettings, Settings
from primexmc.errors import UserError
from primexmc.losses import log_sum_exp
from primexmc.losses.objective import Objective
from primexmc.losses.positives import Positives
from primexmc.losses.remembered import Remembered

Q, L, D, TEMPERATURE = 6, 23, 5, 0.05


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def case(seed):
    """Queries, all prototypes, a batch's labels, who is true for whom, and pairs that are neither."""
    rng = np.random.default_rng(seed)
    q, z = unit(rng.standard_normal((Q, D))), unit(rng.standard_normal((L, D)))
    true = rng.random((Q, L)) < 0.15
    true[0], true[1, 3] = False, True  # a query without label, one with some
    filtered = (rng.random((Q, L)) < 0.1) & ~true
    batch = np.sort(rng.choice(L, 9, replace=False))
    return q, z, true, filtered, batch


def slow_loss(q, z, true, filtered, batch):
    """Of the prototype relation alone."""
    total = 0.0
    for i in range(Q):
        logits = [float(q[i] @ z[j]) / TEMPERATURE for j in range(L)]
        negatives = [logits[j] for j in range(L) if not true[i, j] and not filtered[i, j]]
        positives = [logits[j] for j in batch if true[i, j]]
        for s in positives:
            highest = max([s, *negatives])
            log_sum = highest + math.log(sum(math.exp(x - highest) for x in [s, *negatives]))
            total += (log_sum - s) / len(positives)
    return total / Q


def fast_loss(q, z_batch, z_all, true, filtered, batch):
    settings = LossSettings(name="softmax", temperature=TEMPERATURE, text_weight=0, reverse_weight=0, remembered=True)
    here = Positives.from_csr(csr_matrix(true[:, batch]), filtered=csr_matrix(filtered[:, batch]))
    everywhere = Positives.from_csr(csr_matrix(true), filtered=csr_matrix(filtered))
    remembered = Remembered(z_all, torch.from_numpy(batch), everywhere)
    text = torch.zeros_like(z_batch)
    return Objective(settings, prototypes=True)(q, text, z_batch, here, here.transposed(), remembered=remembered)[0]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cells", [2**24, 4 * Q])
def test_value_and_gradient_are_those_of_a_softmax_over_all_labels(seed, cells, monkeypatch):
    monkeypatch.setattr(log_sum_exp, "CELLS_AT_ONCE", {"cpu": cells})
    q, z, true, filtered, batch = case(seed)
    fast_q, fast_z = (torch.from_numpy(x).requires_grad_() for x in (q, z[batch].copy()))
    stale = torch.from_numpy(z.copy())
    stale[batch] = 7.0  # what is remembered of the batch's own labels must not count
    loss = fast_loss(fast_q, fast_z, stale, true, filtered, batch)
    assert loss.item() == pytest.approx(slow_loss(q, z, true, filtered, batch), rel=1e-9)
    loss.backward()
    step = 1e-6
    for array, gradient, place in ((q, fast_q.grad, None), (z, fast_z.grad, batch)):
        for row in range(len(gradient)):
            for column in range(D):
                values = []
                for sign in (1, -1):
                    moved = array.copy()
                    moved[row if place is None else place[row], column] += sign * step
                    values.append(slow_loss(*((moved, z) if place is None else (q, moved)), true, filtered, batch))
                assert gradient[row, column].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=2e-6)


def test_half_precision_is_near():
    q, z, true, filtered, batch = case(3)
    q, z = torch.from_numpy(q).float(), torch.from_numpy(z).float()
    exact = fast_loss(q, z[batch], z, true, filtered, batch)
    assert fast_loss(q, z[batch], z.half(), true, filtered, batch).item() == pytest.approx(exact.item(), rel=1e-2)


def test_the_margin_has_no_use_for_it():
    with pytest.raises(UserError, match="softmax"):
        Settings().with_values({"loss.name": "margin", "loss.remembered": True}, "test")
