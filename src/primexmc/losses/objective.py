"""The objective: three relations between queries, prototypes and label texts, and the regulariser.

Shapes: Q queries, M labels of the batch, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..config import LossSettings
from ..errors import UserError
from .decoupled_softmax import softmax_terms
from .dynamic_margin import Hinge, margin_terms
from .negatives import hardest_negatives
from .positives import Positives
from .regulariser import prototype_regulariser
from .terms import Terms, at_least_float32

Loss = Callable[[Tensor, Positives, LossSettings, torch.Generator | None], Terms]  # of one relation


class Objective:
    """What training makes small: `L(q, z) + L(q, l) + L(l, q) + lambda R`, or L(q, l) + L(l, q) without prototypes.

    R belongs to the margin loss; the decoupled softmax goes without. A weight of 0 leaves its term out. The
    similarities are computed in float32 also under autocast: their cost is small, and bf16 near 1 is coarser (.004)
    than the differences that the margins judge.
    """

    def __init__(self, settings: LossSettings, *, prototypes: bool) -> None:
        self.settings = settings
        self.loss = LOSSES[settings.name]
        self.prototypes = prototypes
        self.regularised = prototypes and settings.name == "margin" and settings.regulariser_weight > 0
        if not (settings.text_weight or settings.reverse_weight or (prototypes and settings.prototype_weight)):
            raise UserError("loss: every relation weighs 0; give text_weight, reverse_weight or prototype_weight more.")

    def __call__(
        self,
        q_QD: Tensor,
        l_MD: Tensor,
        z_MD: Tensor | None,
        positives: Positives,
        positives_transposed: Positives,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of L2-normalised vectors, and numbers for the log: detached tensors, nothing waits for the GPU.

        `stats` has "loss", each computed term ("prototype", "text", "reverse", "regulariser") before its weight, and
        "violators": the share of pairs that violate in the first relation (for the softmax: of positives that the
        negatives outweigh).
        """
        if self.prototypes != (z_MD is not None):
            raise ValueError("prototypes are given if and only if the objective was built for them")
        with torch.autocast(q_QD.device.type, enabled=False):
            q_QD, l_MD = at_least_float32(q_QD), at_least_float32(l_MD)
            s_text_QM = q_QD @ l_MD.T
            s_proto_QM = None if z_MD is None else q_QD @ at_least_float32(z_MD).T
            terms = self._terms(s_text_QM, s_proto_QM, positives, positives_transposed, generator)
            return _weighted_sum(terms, like=s_text_QM)

    def _terms(
        self,
        s_text_QM: Tensor,
        s_proto_QM: Tensor | None,
        positives: Positives,
        transposed: Positives,
        generator: torch.Generator | None,
    ) -> dict[str, tuple[float, Terms]]:
        """Each term with its weight; what weighs 0 is not computed."""
        settings, loss = self.settings, self.loss
        terms: dict[str, tuple[float, Terms]] = {}
        if s_proto_QM is not None and settings.prototype_weight > 0:
            terms["prototype"] = settings.prototype_weight, loss(s_proto_QM, positives, settings, generator)
        if settings.text_weight > 0:
            terms["text"] = settings.text_weight, loss(s_text_QM, positives, settings, generator)
        if settings.reverse_weight > 0:
            terms["reverse"] = settings.reverse_weight, loss(s_text_QM.T, transposed, settings, generator)
        if s_proto_QM is not None and self.regularised:
            r = prototype_regulariser(
                s_text_QM,
                s_proto_QM,
                positives,
                margin=settings.regulariser_margin,
                num_negatives=settings.num_negatives,
                generator=generator,
            )
            terms["regulariser"] = settings.regulariser_weight, Terms(r, r.new_zeros(()), r.new_zeros(()))
        return terms


def _weighted_sum(terms: dict[str, tuple[float, Terms]], like: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    total = sum((weight * term.loss for weight, term in terms.values()), start=like.new_zeros(()))
    stats = {"loss": total.detach()} | {name: term.loss.detach() for name, (_, term) in terms.items()}
    for _, first in list(terms.values())[:1]:
        stats["violators"] = first.violators / first.pairs.clamp(min=1)
    return total, stats


def _margin(sim_QM: Tensor, positives: Positives, settings: LossSettings, generator: torch.Generator | None) -> Terms:
    negatives = hardest_negatives(sim_QM, positives, settings.num_negatives)
    hinge = Hinge(
        margin_min=settings.margin_min,
        margin_max=settings.margin_max,
        softmax_tau=settings.softmax_tau or None,
        tie_gradient=settings.tie_gradient,
        margin_form=settings.margin_form,
        detach_margin=settings.detach_margin,
    )
    return margin_terms(sim_QM, positives, negatives, hinge, generator)


def _softmax(sim_QM: Tensor, positives: Positives, settings: LossSettings, generator: torch.Generator | None) -> Terms:
    return softmax_terms(sim_QM, positives, settings.temperature)


LOSSES: dict[str, Loss] = {"margin": _margin, "softmax": _softmax}
