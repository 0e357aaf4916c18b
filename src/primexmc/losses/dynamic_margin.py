"""The dynamic margin loss: a hinge whose margin follows how far apart a positive and a negative are.

Shapes: Q queries, M labels of the batch, k hard negatives.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .negatives import Negatives, hardest_negatives
from .positives import Positives, as_positives
from .similarities import Similarities
from .terms import Terms, at_least_float32

MarginForm = Literal["max", "inverted"]


def dynamic_margin_loss(
    sim_QM: Tensor,
    positive_QM: Tensor | Positives,
    *,
    margin_min: float = 0.1,
    margin_max: float = 0.3,
    num_negatives: int = 100,
    softmax_tau: float | None = 0.1,
    tie_gradient: float = 0.0,
    margin_form: MarginForm = "max",
    detach_margin: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`max(m - d, 0)` with d = s_p - s_n and m = clip(|d|, margin_min, margin_max): a scalar, the mean over queries.

    Each query meets one of its positives, drawn anew, and its `num_negatives` most similar non-positives. Their hinges
    are added with the weights softmax(s_n / softmax_tau) over the violating negatives (m - d > 0), through which
    gradient flows; `softmax_tau=None` takes their plain mean instead. A query without positive or negative counts 0.

    Where margin_min <= d <= margin_max the hinge is at a tie, m - d = 0: the share `tie_gradient` of its gradient
    passes (torch.maximum has 0.5, relu 0). A tie is not a violation, so under softmax weights its weight is 0 and
    nothing passes whatever the share; `tie_gradient` then matters with `softmax_tau=None` only.

    Ablations: `margin_form="inverted"` is the paper's printed Eq. 3 (d + margin_min where 0 < d < margin_min);
    `detach_margin=False` lets gradient through the margin. `Positives` instead of a matrix avoid synchronisation.
    """
    if margin_form not in ("max", "inverted"):
        raise ValueError(f'margin_form is "max" or "inverted", not "{margin_form}"')
    if not 0 <= margin_min <= margin_max:
        raise ValueError(f"expected 0 <= margin_min <= margin_max, not {margin_min} and {margin_max}")
    if num_negatives < 1 or (softmax_tau is not None and softmax_tau <= 0):
        raise ValueError("num_negatives is at least 1, softmax_tau above 0 (or None for the plain mean)")
    positives = as_positives(positive_QM, sim_QM)
    if sim_QM.numel() == 0:
        return sim_QM.float().sum()
    negatives = hardest_negatives(sim_QM, positives, num_negatives)
    hinge = Hinge(margin_min, margin_max, softmax_tau, tie_gradient, margin_form, detach_margin)
    return margin_terms(Similarities.of_matrix(sim_QM), positives, negatives, hinge, generator).loss


class Hinge(NamedTuple):
    """The numbers of the loss, as `dynamic_margin_loss` explains them."""

    margin_min: float
    margin_max: float
    softmax_tau: float | None
    tie_gradient: float
    margin_form: MarginForm
    detach_margin: bool


def margin_terms(
    sims: Similarities, positives: Positives, negatives: Negatives, hinge: Hinge, generator: torch.Generator | None
) -> Terms:
    """The loss against given negatives, with the numbers for the log."""
    column_Q1 = positives.draw(generator)[:, None]
    valid_Qk = negatives.valid_Qk & (positives.count_Q > 0)[:, None]
    picked = at_least_float32(sims.pick(torch.cat([column_Q1, negatives.index_Qk], 1)))
    s_p_Q1, s_n_Qk = picked[:, :1], picked[:, 1:]
    argument_Qk = _hinge_argument(s_p_Q1 - s_n_Qk, hinge)
    violates_Qk = (argument_Qk > 0) & valid_Qk
    # The argument times a constant is the hinge, and the constant is its derivative: 1, the tie's share, or 0.
    passes_Qk = violates_Qk + hinge.tie_gradient * ((argument_Qk == 0) & valid_Qk)
    hinge_Qk = argument_Qk * passes_Qk
    if hinge.softmax_tau is None:
        loss_Q = hinge_Qk.sum(1) / valid_Qk.sum(1).clamp(min=1)
    else:
        loss_Q = (_violator_weights(s_n_Qk / hinge.softmax_tau, violates_Qk) * hinge_Qk).sum(1)
    return Terms(loss_Q.mean(), violates_Qk.sum(), valid_Qk.sum())


def _hinge_argument(d_Qk: Tensor, hinge: Hinge) -> Tensor:
    """m - d: exactly 0 where the margin is d itself."""
    m_Qk = d_Qk.abs().clamp(hinge.margin_min, hinge.margin_max)
    argument_Qk = (m_Qk.detach() if hinge.detach_margin else m_Qk) - d_Qk
    if hinge.margin_form == "inverted":
        argument_Qk = torch.where((d_Qk > 0) & (d_Qk < hinge.margin_min), d_Qk + hinge.margin_min, argument_Qk)
    return argument_Qk


def _violator_weights(logit_Qk: Tensor, violates_Qk: Tensor) -> Tensor:
    """Softmax over the violators of each row; all zero, without NaN in the gradient, where a row has none."""
    masked_Qk = logit_Qk.masked_fill(~violates_Qk, torch.finfo(logit_Qk.dtype).min)
    return masked_Qk.softmax(1) * violates_Qk
