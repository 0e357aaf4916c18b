"""The decoupled softmax loss: each positive against the negatives alone, never against another positive.

Shapes: Q queries, M labels of the batch, E true pairs.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from .log_sum_exp import lse_of_matrix
from .positives import Positives, as_positives
from .terms import Terms


def decoupled_softmax_loss(sim_QM: Tensor, positive_QM: Tensor | Positives, *, temperature: float = 0.05) -> Tensor:
    """One term per positive, `-(s_p - logaddexp(LSE over the row's negatives, s_p))` with s = sim / temperature.

    The mean over each row's positives, then the mean over all rows; a row without positive or without negative
    counts 0. The term equals softplus(LSE - s_p), which is how it is computed: safe however large s is.
    """
    if temperature <= 0:
        raise ValueError(f"temperature is above 0, not {temperature}")
    positives = as_positives(positive_QM, sim_QM)
    if sim_QM.numel() == 0:
        return sim_QM.float().sum()
    return decoupled_terms(*lse_of_matrix(sim_QM, positives, temperature), positives).loss


def decoupled_terms(lse_Q: Tensor, s_E: Tensor, positives: Positives) -> Terms:
    """The loss with the numbers for the log: a positive violates when the negatives outweigh it."""
    lse_E = lse_Q.index_select(0, positives.rows_E)
    term_E = softplus(lse_E - s_E, threshold=40) / positives.count_Q[positives.rows_E]
    loss = term_E.sum() / max(1, len(positives.count_Q))
    return Terms(loss, (lse_E > s_E).sum(), positives.count_Q.sum())
