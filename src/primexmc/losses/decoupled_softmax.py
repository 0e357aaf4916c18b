"""The decoupled softmax loss: each positive against the negatives alone, never against another positive.

Shapes: Q queries, M labels of the batch, E true pairs.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .positives import Positives, as_positives
from .terms import Terms, at_least_float32


def decoupled_softmax_loss(sim_QM: Tensor, positive_QM: Tensor | Positives, *, temperature: float = 0.05) -> Tensor:
    """One term per positive, `-(s_p - logaddexp(LSE over the row's negatives, s_p))` with s = sim / temperature.

    The mean over each row's positives, then the mean over all rows; a row without positive or without negative
    counts 0. The term equals softplus(LSE - s_p), which is how it is computed: safe however large s is.
    """
    if temperature <= 0:
        raise ValueError(f"temperature is above 0, not {temperature}")
    positives = as_positives(positive_QM, sim_QM)
    return softmax_terms(sim_QM, positives, temperature).loss


def softmax_terms(sim_QM: Tensor, positives: Positives, temperature: float) -> Terms:
    """The loss with the numbers for the log: a positive violates when the negatives outweigh it."""
    if sim_QM.numel() == 0:
        return Terms(sim_QM.float().sum(), positives.count_Q.sum(), positives.count_Q.sum())
    s_QM = at_least_float32(sim_QM) / temperature
    nothing = torch.finfo(s_QM.dtype).min  # finite: -inf would make NaN gradients in a row without negatives
    negatives_QM = s_QM.reshape(-1).index_fill(0, positives.flat_E, nothing).view_as(s_QM)
    lse_E = negatives_QM.logsumexp(1)[positives.rows_E]
    s_p_E = s_QM[positives.rows_E, positives.columns_E]
    term_E = softplus(lse_E - s_p_E, threshold=40) / positives.count_Q[positives.rows_E]
    loss = term_E.sum() / len(positives.count_Q)
    return Terms(loss, (lse_E > s_p_E).sum(), positives.count_Q.sum())
