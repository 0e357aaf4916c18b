"""Labels outside of the batch as negatives: their prototypes as they were last seen, without a gradient of their own.

Shapes: Q queries, M labels of the batch, L labels in all, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .log_sum_exp import lse_over_negatives
from .positives import Positives


@dataclass(frozen=True, eq=False)
class Remembered:
    """All labels' prototypes (normalised), the labels of the batch, and each query's true labels among all."""

    z_LD: Tensor
    labels_M: Tensor
    positives: Positives

    def added_to(self, lse_Q: Tensor, q_QD: Tensor, temperature: float) -> Tensor:
        """The log-sum-exp over the batch and what is outside of it: a softmax over all labels."""
        outside_Q = lse_over_negatives(q_QD, self.z_LD, self.positives, temperature, left_out_K=self.labels_M)
        return torch.logaddexp(lse_Q, outside_Q)
