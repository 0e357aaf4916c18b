"""The contrastive loss of dense retrieval (DPR): one positive against the negatives; other positives take no part.

Shapes: Q queries, M labels of the batch, E true pairs.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .log_sum_exp import lse_of_matrix
from .positives import Positives, as_positives
from .terms import Terms


def contrastive_loss(
    sim_QM: Tensor,
    positive_QM: Tensor | Positives,
    *,
    temperature: float = 0.05,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`-log(e^p / (e^p + sum of e^n))` of similarities / temperature, for one drawn positive p of each row.

    The mean over rows; one without positive or without negative counts 0.
    """
    if temperature <= 0:
        raise ValueError(f"temperature is above 0, not {temperature}")
    positives = as_positives(positive_QM, sim_QM)
    if sim_QM.numel() == 0:
        return sim_QM.float().sum()
    return contrastive_terms(*lse_of_matrix(sim_QM, positives, temperature), positives, generator).loss


def contrastive_terms(lse_Q: Tensor, s_E: Tensor, positives: Positives, generator: torch.Generator | None) -> Terms:
    """The loss with the numbers for the log: a row violates when its negatives outweigh its positive."""
    if len(s_E) == 0:
        return Terms(s_E.sum(), positives.count_Q.sum(), positives.count_Q.sum())
    has_Q = positives.count_Q > 0
    ahead_Q = lse_Q - s_E[positives.draw_pair(generator)]
    loss_Q = softplus(ahead_Q, threshold=40).where(has_Q, 0.0)
    return Terms(loss_Q.mean(), ((ahead_Q > 0) & has_Q).sum(), has_Q.sum())
