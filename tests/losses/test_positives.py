"""Positives: the same pairs however they are built, seen from either side, and drawn alike likely."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import positives
from scipy.sparse import coo_matrix, csr_matrix

from primexmc.losses import Positives


def pairs(built):
    return list(zip(built.rows_E.tolist(), built.columns_E.tolist(), strict=True))


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (5, 12), (3, 0), (0, 3)])
def test_all_ways_hold_the_same_pairs(shape):
    true = positives(np.random.default_rng(0), *shape) if min(shape) else torch.zeros(shape, dtype=torch.int64)
    expected = [(q, m) for q in range(shape[0]) for m in range(shape[1]) if true[q, m]]
    for built in (Positives.from_mask(true), Positives.from_csr(csr_matrix(true.numpy()))):
        assert pairs(built) == expected
        assert built.count_Q.tolist() == [int(true[q].sum()) for q in range(shape[0])]
        for q in range(shape[0]):
            span = slice(built.start_Q[q], built.start_Q[q] + built.count_Q[q])
            assert all(row == q for row in built.rows_E[span].tolist())
        assert torch.equal(built.mask_QM, true.bool())
        turned = built.transposed()
        assert pairs(turned) == sorted((m, q) for q, m in expected)
        assert torch.equal(turned.mask_QM, true.bool().T)
        assert turned.count_Q.tolist() == [int(true[:, m].sum()) for m in range(shape[1])]


def test_explicit_zeros_and_duplicates_are_no_pairs():
    csr = csr_matrix((np.array([1.0, 0.0, 1.0, 1.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3))
    assert pairs(Positives.from_csr(csr)) == [(0, 2), (1, 1)]
    assert csr.nnz == 4  # the caller's matrix is left as it was
    summed = coo_matrix((np.ones(2), ([0, 0], [1, 1])), shape=(1, 2)).tocsr()
    assert pairs(Positives.from_csr(summed)) == [(0, 1)]


def test_every_positive_is_drawn_alike_often():
    true = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    built, generator = Positives.from_mask(true), torch.Generator().manual_seed(0)
    drawn = torch.stack([built.draw(generator) for _ in range(6000)])
    for row in (0, 2, 3):
        count = int(true[row].sum())
        for column in range(5):
            share = (drawn[:, row] == column).double().mean().item()
            expected = true[row, column].item() / count
            assert abs(share - expected) <= 5 * (expected * (1 - expected) / 6000) ** 0.5  # 5 standard deviations
    assert drawn.min() >= 0 and drawn.max() < 5


def test_the_last_positive_is_reached_but_never_passed():
    """A random number next to 1 times the count may round up to the count itself."""
    built = Positives.from_mask(torch.ones(1, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "rand", lambda *_, **__: torch.tensor([1 - 2**-24]))
        assert built.draw().tolist() == [2]


def test_no_positives_at_all():
    assert Positives.from_mask(torch.zeros(3, 4)).draw().tolist() == [0, 0, 0]


def test_same_generator_same_draw():
    built = Positives.from_mask(torch.ones(50, 20))
    first, second = (built.draw(torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, second)
