"""Filter pairs are neither rewarded nor punished: a loss is what it would be without that column in that row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import positives, similarities
from scipy.sparse import csr_matrix

from primexmc.losses.contrastive import contrastive_loss
from primexmc.losses.decoupled_softmax import decoupled_softmax_loss
from primexmc.losses.dynamic_margin import dynamic_margin_loss
from primexmc.losses.log_sum_exp import lse_in_parts, lse_of_matrix
from primexmc.losses.negatives import hardest_negatives
from primexmc.losses.positives import Positives

LOSSES = {
    "margin": dynamic_margin_loss,
    "margin, plain": lambda sim, true: dynamic_margin_loss(sim, true, softmax_tau=None),
    "decoupled": decoupled_softmax_loss,
    "contrastive": contrastive_loss,
}


def case(seed):
    """Similarities, true pairs and filter pairs, some of which are true all the same: those stay true."""
    rng = np.random.default_rng(seed)
    sim, true = similarities(rng, 8, 6), positives(rng, 8, 6, several=False)
    true[3] = true[4] = torch.tensor([0, 0, 1, 0, 0, 0])
    filtered = rng.random((8, 6)) < 0.3
    filtered[3] = ~true[3].bool().numpy()  # no negative is left
    filtered[4, sim[4].argmax()] = True
    sim.data[4, 2] = -1
    return sim, true, torch.from_numpy(filtered)


def built(true, filtered):
    return Positives.from_csr(csr_matrix(true.numpy()), filtered=csr_matrix(filtered.numpy().astype(np.float32)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", LOSSES)
def test_as_if_the_column_were_not_there(name, seed):
    sim, true, filtered = case(seed)
    loss = LOSSES[name]
    found = loss(sim, built(true, filtered))
    (gradient,) = torch.autograd.grad(found, sim)
    rows = []
    for row in range(8):
        kept = [column for column in range(6) if true[row, column] or not filtered[row, column]]
        rows.append(loss(sim[[row]][:, kept], true[[row]][:, kept]) if kept else sim.sum() * 0)
    expected = torch.stack(rows).mean()
    assert found.item() == pytest.approx(expected.item(), abs=1e-12) and expected > 0
    assert torch.allclose(gradient, torch.autograd.grad(expected, sim)[0], atol=1e-12)
    assert not torch.equal(gradient, torch.autograd.grad(loss(sim, true), sim)[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_they_are_no_hard_negatives(dtype):
    sim, true, filtered = case(7)
    index, valid = hardest_negatives(sim.to(dtype), built(true, filtered), 6)
    found = torch.zeros(8, 6, dtype=torch.bool).scatter(1, index, valid)
    assert torch.equal(found, ~true.bool() & ~filtered)


def test_part_by_part():
    rng = np.random.default_rng(0)
    _, true, filtered = case(0)
    rows, columns = (torch.tensor(rng.normal(size=(n, 4)), requires_grad=True) for n in (8, 6))
    pairs = built(true, filtered)
    whole, parts = lse_of_matrix(rows @ columns.T, pairs, 0.5), lse_in_parts(rows, columns, pairs, 0.5, 4)
    some = ~(true.bool() | filtered).all(1)
    assert torch.allclose(whole[0][some], parts[0][some]) and torch.allclose(whole[1], parts[1])
    for one, other in zip(
        *(torch.autograd.grad(x[0][some].sum(), (rows, columns)) for x in (whole, parts)), strict=True
    ):
        assert torch.allclose(one, other)


def test_seen_from_the_columns():
    _, true, filtered = case(1)
    turned = built(true, filtered).transposed()
    assert torch.equal(turned.mask_QM, true.T.bool())
    assert torch.equal(turned.no_negatives.mask_QM, (true.bool() | filtered).T)
