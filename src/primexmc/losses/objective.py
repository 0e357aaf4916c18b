"""The objective: three relations between queries, prototypes and label texts, and the regulariser.

Shapes: Q queries, M labels of the batch, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..config import LossSettings
from ..errors import UserError
from ..own_code import own
from .contrastive import contrastive_terms
from .decoupled_softmax import decoupled_terms
from .dynamic_margin import Hinge, margin_terms
from .positives import Positives
from .regulariser import regulariser_term
from .relation import Relation
from .terms import Terms, as_terms, at_least_float32

Loss = Callable[[Relation, LossSettings, torch.Generator | None], Terms | Tensor]


class Objective:
    """What training makes small: `L(q, z) + L(q, l) + L(l, q) + lambda R`, or L(q, l) + L(l, q) without prototypes.

    R belongs to the margin loss; the others go without. A weight of 0 leaves its term out. The
    similarities are computed in float32 also under autocast: their cost is small, and bf16 near 1 is coarser (.004)
    than the differences that the margins judge.
    """

    def __init__(self, settings: LossSettings, *, prototypes: bool) -> None:
        self.settings = settings
        self.loss: Loss = LOSSES.get(settings.name) or own(settings.name, "loss.name")
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
            text = Relation(q_QD, l_MD, positives)
            reverse = Relation(l_MD, q_QD, positives_transposed, turned=text)
            prototype = None if z_MD is None else Relation(q_QD, at_least_float32(z_MD), positives)
            return _weighted_sum(self._terms(prototype, text, reverse, generator))

    def _terms(
        self, prototype: Relation | None, text: Relation, reverse: Relation, generator: torch.Generator | None
    ) -> dict[str, tuple[float, Terms]]:
        """Each term with its weight; what weighs 0 is not computed."""
        settings = self.settings
        relations = {
            "prototype": (settings.prototype_weight, prototype),
            "text": (settings.text_weight, text),
            "reverse": (settings.reverse_weight, reverse),
        }
        terms = {
            name: (weight, as_terms(self.loss(relation, settings, generator)))
            for name, (weight, relation) in relations.items()
            if weight > 0 and relation is not None
        }
        if prototype is not None and self.regularised:
            terms["regulariser"] = (settings.regulariser_weight, _regulariser(text, prototype, settings, generator))
        return terms


def _weighted_sum(terms: dict[str, tuple[float, Terms]]) -> tuple[Tensor, dict[str, Tensor]]:
    loss = torch.stack([weight * term.loss for weight, term in terms.values()]).sum()
    stats = {"loss": loss.detach()} | {name: term.loss.detach() for name, (_, term) in terms.items()}
    first = next(iter(terms.values()))[1]
    return loss, stats | {"violators": first.violators / first.pairs.clamp(min=1)}


def _regulariser(
    text: Relation, prototype: Relation, settings: LossSettings, generator: torch.Generator | None
) -> Terms:
    negatives = prototype.hardest_negatives(settings.num_negatives)
    r = regulariser_term(
        text.similarities, prototype.similarities, text.positives, negatives, settings.regulariser_margin, generator
    )
    return Terms(r, r.new_zeros(()), r.new_zeros(()))


def _margin(relation: Relation, settings: LossSettings, generator: torch.Generator | None) -> Terms:
    hinge = Hinge(
        margin_min=settings.margin_min,
        margin_max=settings.margin_max,
        softmax_tau=settings.softmax_tau or None,
        tie_gradient=settings.tie_gradient,
        margin_form=settings.margin_form,
        detach_margin=settings.detach_margin,
    )
    negatives = relation.hardest_negatives(settings.num_negatives)
    return margin_terms(relation.similarities, relation.positives, negatives, hinge, generator)


def _softmax(relation: Relation, settings: LossSettings, generator: torch.Generator | None) -> Terms:
    return decoupled_terms(*relation.lse_and_positives(settings.temperature), relation.positives)


def _contrastive(relation: Relation, settings: LossSettings, generator: torch.Generator | None) -> Terms:
    return contrastive_terms(*relation.lse_and_positives(settings.temperature), relation.positives, generator)


LOSSES: dict[str, Loss] = {"margin": _margin, "softmax": _softmax, "contrastive": _contrastive}
