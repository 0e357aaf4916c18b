"""Why a score is what it is: the shares that a label's text, centroid and free vector have in it.

The score is the cosine of a query and the label's prototype, which a network makes from up to three tokens. What a
token adds depends on which others are there, so each is given what it adds on average over all orders in which the
tokens could come (its Shapley value), where no token at all scores 0. These shares add up to the score exactly; one is
negative where a token pulls the prototype away from the query. Prototypes of labels that were added later are shorter
than 1; their shares are as much smaller.

Shapes: S subsets of the tokens, 3 tokens, D dimensions.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .mixture import NO_MIXTURE, Mixture
from .network import PrimeNetwork
from .new_prototypes import TEXT_WORTH
from .prototypes import LabelPrototypeNetwork

PARTS = ("text", "centroid", "free vector")


class Contribution(NamedTuple):
    """What one token does for a score: its share, and the score without it (None where nothing would be left)."""

    part: str
    share: float
    without: float | None


class Tokens(NamedTuple):
    """A label's text, centroid and free vector, which of them it has, and how long its prototype is. A label that was
    not trained has its number of example queries, too: its prototype is made in another way (new_prototypes.py); one
    that was trained may be a mixture."""

    x_3D: Tensor
    there: tuple[bool, bool, bool]
    length: float = 1.0
    untrained_on: int | None = None
    mixture: Mixture = NO_MIXTURE


def contributions(h_D: Tensor, tokens: Tokens, network: PrimeNetwork) -> list[Contribution]:
    """The shares of a label's tokens in the product of h_D (normalised) and its prototype."""
    players = [number for number in range(3) if tokens.there[number]]
    subsets = [subset for size in range(1, len(players) + 1) for subset in itertools.combinations(players, size)]
    scores = (tokens.length * (_prototypes(tokens, subsets, network) @ h_D)).tolist()
    score_of: dict[tuple[int, ...], float] = {(): 0.0} | dict(zip(subsets, scores, strict=True))
    return [
        Contribution(
            PARTS[player],
            _shapley(player, players, score_of),
            score_of[tuple(other for other in players if other != player)] if len(players) > 1 else None,
        )
        for player in players
    ]


def _shapley(player: int, players: list[int], score_of: dict[tuple[int, ...], float]) -> float:
    others = [other for other in players if other != player]
    total = 0.0
    for size in range(len(others) + 1):
        weight = math.factorial(size) * math.factorial(len(others) - size) / math.factorial(len(players))
        for before in itertools.combinations(others, size):
            total += weight * (score_of[tuple(sorted((*before, player)))] - score_of[before])
    return total


@torch.no_grad()
def _prototypes(tokens: Tokens, subsets: list[tuple[int, ...]], network: PrimeNetwork) -> Tensor:
    """z_SD for each subset, as if the label had these tokens alone."""
    has_S3 = torch.tensor([[number in subset for number in range(3)] for subset in subsets], device=tokens.x_3D.device)
    x_S3D = tokens.x_3D.expand(len(subsets), -1, -1)
    z_SD = functional.normalize(_combined(x_S3D, has_S3, network.label_prototypes).float(), dim=1)
    if tokens.untrained_on is None:
        return tokens.mixture.of(z_SD, x_S3D[:, 0] * has_S3[:, :1], x_S3D[:, 1] * has_S3[:, 1:2])
    text_SD, centroid_SD = functional.normalize(x_S3D[:, 0], dim=1) * has_S3[:, :1], x_S3D[:, 1] * has_S3[:, 1:2]
    seen_SD = functional.normalize(TEXT_WORTH * text_SD + tokens.untrained_on * centroid_SD, dim=1)
    return seen_SD if network.label_prototypes is None else functional.normalize(z_SD + seen_SD, dim=1)


def _combined(x_S3D: Tensor, has_S3: Tensor, combine: nn.Module | None) -> Tensor:
    if combine is None:
        return x_S3D[:, 0]
    if isinstance(combine, LabelPrototypeNetwork):
        return combine.mix(x_S3D, has_S3)
    # A sum, or one's own: what cannot leave the text out gets zeros for it.
    h_SD, c_SD, v_SD = (x_S3D * has_S3[:, :, None]).unbind(dim=1)
    z_SD: Tensor = combine(h_SD, c_SD, v_SD, has_S3[:, 1], has_S3[:, 2])
    return z_SD
