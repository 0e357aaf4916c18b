"""Random cases for the losses, and how a gradient is compared with an oracle's."""

from __future__ import annotations

import numpy as np
import torch


def similarities(rng, num_rows, num_columns, *, grid=None):
    """float64 in [-1, 1] that needs a gradient; on a grid the differences hit the margins' kinks and ties."""
    values = rng.uniform(-1, 1, (num_rows, num_columns))
    if grid:
        values = np.round(values / grid) * grid
        values += rng.permutation(num_rows * num_columns).reshape(num_rows, num_columns) * 1e-13  # no equal negatives
    return torch.tensor(values, requires_grad=True)


def positives(rng, num_rows, num_columns, *, several=True):
    """0/1 with rows without any, rows with all, and others with one or several."""
    true = np.zeros((num_rows, num_columns), dtype=int)
    for row in range(num_rows):
        count = rng.integers(0, min(4, num_columns) + 1) if several else rng.integers(0, 2)
        true[row, rng.choice(num_columns, size=count, replace=False)] = 1
    if several and num_rows > 4:
        true[1], true[2] = 1, 0
    return torch.tensor(true)


def dense(gradient, shape):
    """The oracle's {(q, m): value} as an array."""
    array = np.zeros(shape)
    for place, value in gradient.items():
        array[place] += value
    return array


def finite_differences(loss, sim, step=1e-6):
    """Central differences, one entry at a time."""
    values = sim.detach().clone()
    gradient = torch.zeros_like(values)
    for place in np.ndindex(*values.shape):
        for sign in (1, -1):
            moved = values.clone()
            moved[place] += sign * step
            gradient[place] += sign * loss(moved) / (2 * step)
    return gradient
