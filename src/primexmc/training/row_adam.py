"""Adam for a large table of which a step touches few rows (the paper's sparse Adam).

Shapes: L rows, M rows of a step, D dimensions.
"""

from __future__ import annotations

import torch
from torch import Tensor

FADING = (0.9, 0.999)
EPSILON = 1e-8


class RowAdam:
    """Rows without a gradient stay where they are, and so do their moments; all rows count the same steps."""

    def __init__(self, w_LD: Tensor) -> None:
        self.w_LD, self.steps = w_LD, 0
        self.mean_LD, self.square_LD = torch.zeros_like(w_LD), torch.zeros_like(w_LD)

    @torch.no_grad()
    def step(self, rows_M: Tensor, gradient_MD: Tensor, learning_rate: float) -> None:
        """Each row once."""
        self.steps += 1
        one, two = FADING
        mean_MD = self.mean_LD[rows_M].lerp_(gradient_MD, 1 - one)
        square_MD = self.square_LD[rows_M].lerp_(gradient_MD.square(), 1 - two)
        self.mean_LD[rows_M], self.square_LD[rows_M] = mean_MD, square_MD
        full_MD = (square_MD / (1 - two**self.steps)).sqrt_().add_(EPSILON)
        self.w_LD[rows_M] -= learning_rate / (1 - one**self.steps) * mean_MD / full_MD
