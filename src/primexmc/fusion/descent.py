"""Many small squared-hinge problems made small at once: conjugate gradients, with steps of its own for each problem.

Each problem is |w|^2 / 2 + strength x the sum of max(0, 1 - y s)^2 over its pairs, where s = design @ w. A step asks
for one product with the design matrix and one with its transpose; how far it goes is then found among the pairs alone.
Everything is in parameters of like curvature: without, those that stand in all pairs would take hundreds of steps.
Numpy's own sums are used, not BLAS, whose threads would stand in the way of those that solve other blocks.
Shapes: L problems, E pairs, P parameters; both are in the order of their problems.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

Floats = NDArray[np.float32]
Starts = NDArray[np.integer[Any]]
LINE_STEPS = 2  # Newton's, along each direction: a third changes nothing


def descend(
    design_EP: csr_matrix, y_E: Floats, starts_E: Starts, starts_P: Starts, strength: float, iterations: int
) -> Floats:
    """The parameters after so many steps from 0. The pairs and parameters of problem i lie from starts[i] on."""
    of_E, of_P, twice = _Parts(starts_E), _Parts(starts_P), np.float32(2 * strength)
    curvature_P = 1 + _product(design_EP.power(2).T, np.full(len(y_E), twice))
    w_P, missing_E = np.zeros(design_EP.shape[1], np.float32), np.ones(len(y_E), np.float32)  # missing: 1 - y s
    direction_P = before_P = np.zeros_like(w_P)
    length_L = np.zeros(len(starts_E) - 1, np.float32)  # of the gradient before
    for _ in range(iterations):
        gradient_P = w_P - _product(design_EP.T, twice * y_E * np.maximum(0, missing_E))
        scaled_P = gradient_P / curvature_P
        turned_L = of_P.sums(scaled_P * (gradient_P - before_P))
        kept_L = np.maximum(0, _ratio(turned_L, length_L))  # Polak and Ribiere's share of the direction before
        direction_P = of_P.spread(kept_L) * direction_P - scaled_P
        before_P, length_L = gradient_P, of_P.sums(scaled_P * gradient_P)
        change_E = y_E * _product(design_EP, direction_P)
        slope_L, bend_L = of_P.sums(w_P * direction_P), of_P.sums(direction_P * direction_P)
        far_L, there_E = np.zeros_like(length_L), missing_E
        for _ in range(LINE_STEPS):
            wrong_E = np.where(there_E > 0, change_E, 0)
            down_L = twice * of_E.sums(wrong_E * there_E) - slope_L - far_L * bend_L
            far_L = far_L + _ratio(down_L, twice * of_E.sums(wrong_E * change_E) + bend_L)
            there_E = missing_E - of_E.spread(far_L) * change_E
        w_P, missing_E = w_P + of_P.spread(far_L) * direction_P, there_E
    return w_P


class _Parts:
    """Stretches of a flat array, of which some may be empty."""

    def __init__(self, starts: Starts) -> None:
        self.lengths = np.diff(starts)
        self.filled = np.flatnonzero(self.lengths)
        self.starts = starts[self.filled]

    def sums(self, values: Floats) -> Floats:
        found = np.zeros(len(self.lengths), np.float32)
        if len(self.filled):
            found[self.filled] = np.add.reduceat(values, self.starts)
        return found

    def spread(self, values_L: Floats) -> Floats:
        return np.repeat(values_L, self.lengths)


def _product(matrix: csr_matrix | csc_matrix, vector: Floats) -> Floats:
    product: Floats = matrix @ vector
    return product


def _ratio(over: Floats, under: Floats) -> Floats:
    """0 where there is nothing to divide by."""
    return np.divide(over, under, out=np.zeros_like(over), where=under > np.finfo(np.float32).tiny)
