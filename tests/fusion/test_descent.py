"""Conjugate gradients for many problems at once, held to a general method that solves each by itself in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import block_diag, csr_matrix

from primexmc.fusion.descent import descend

SIZES = [(30, 8), (0, 1), (5, 12), (200, 40), (1, 1)]  # pairs and parameters; the second has no pairs at all


@pytest.fixture(scope="module")
def problems():
    """Random words, and a column of ones that stands for the bias."""
    rng = np.random.default_rng(0)
    found = []
    for pairs, parameters in SIZES:
        design = rng.random((pairs, parameters)) * (rng.random((pairs, parameters)) < 0.3)
        design[:, -1] = 1
        found.append((design.astype(np.float32), np.where(rng.random(pairs) < 0.2, 1, -1).astype(np.float32)))
    return found


def together(problems, strength, iterations):
    starts_E, starts_P = (np.concatenate([[0], np.cumsum([size[part] for size in SIZES])]) for part in (0, 1))
    design = csr_matrix(block_diag([design for design, _ in problems]))
    w = descend(design, np.concatenate([y for _, y in problems]), starts_E, starts_P, strength, iterations)
    return np.split(w, starts_P[1:-1])


def objective(w, design, y, strength):
    return 0.5 * w @ w + strength * sum(max(0.0, 1 - y[e] * (design[e].astype(float) @ w)) ** 2 for e in range(len(y)))


def slowly(design, y, strength):
    found = minimize(objective, np.zeros(design.shape[1]), (design, y, strength), options={"gtol": 1e-6})
    return found.x, found.fun


@pytest.mark.parametrize("strength", [0.1, 1.0, 30.0])
def test_each_problem_as_by_itself(problems, strength):
    for found, (design, y) in zip(together(problems, strength, 300), problems, strict=True):
        expected, lowest = slowly(design, y, strength)
        np.testing.assert_allclose(found, expected, atol=2e-3)
        assert objective(found, design, y, strength) <= lowest * (1 + 1e-4) + 1e-6


def test_a_few_steps_come_near(problems):
    for found, (design, y) in zip(together(problems, 1.0, 20), problems, strict=True):
        assert objective(found, design, y, 1.0) <= slowly(design, y, 1.0)[1] * 1.01 + 1e-6


def test_more_steps_never_make_it_worse(problems):
    after = [
        sum(objective(w, *one, 1.0) for w, one in zip(together(problems, 1.0, steps), problems, strict=True))
        for steps in range(25)
    ]
    assert all(later <= earlier * (1 + 1e-5) for earlier, later in itertools.pairwise(after))
