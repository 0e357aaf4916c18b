"""Why a score is what it is: the shares that a label's text, centroid and free vector have in it.

The score is the cosine of a query and the label's prototype, which a network makes from up to three tokens. What a
token adds depends on which others are there, so each is given what it adds on average over all orders in which the
tokens could come (its Shapley value), where no token at all scores 0. These shares add up to the score exactly; one is
negative where a token pulls the prototype away from the query.

Shapes: S subsets of the tokens, 3 tokens, D dimensions.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .network import PrimeNetwork
from .prototypes import LabelPrototypeNetwork

PARTS = ("text", "centroid", "free vector")


class Contribution(NamedTuple):
    """What one token does for a score: its share, and the score without it (None where nothing would be left)."""

    part: str
    share: float
    without: float | None


def contributions(
    h_D: Tensor, x_3D: Tensor, there: tuple[bool, bool, bool], network: PrimeNetwork
) -> list[Contribution]:
    """The shares of the tokens x_3D that are there in the cosine of h_D (normalised) and their prototype."""
    players = [number for number in range(3) if there[number]]
    subsets = [subset for size in range(1, len(players) + 1) for subset in itertools.combinations(players, size)]
    score_of = dict(zip(subsets, _scores(h_D, x_3D, subsets, network), strict=True)) | {(): 0.0}
    everything = tuple(players)
    return [
        Contribution(
            PARTS[player],
            _shapley(player, players, score_of),
            score_of[tuple(other for other in everything if other != player)] if len(players) > 1 else None,
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
def _scores(h_D: Tensor, x_3D: Tensor, subsets: list[tuple[int, ...]], network: PrimeNetwork) -> list[float]:
    """The cosine for each subset, as if the label had these tokens alone."""
    has_S3 = torch.tensor([[number in subset for number in range(3)] for subset in subsets], device=x_3D.device)
    x_S3D = x_3D.expand(len(subsets), -1, -1)
    combine = network.label_prototypes
    if combine is None:
        z_SD = x_S3D[:, 0]
    elif isinstance(combine, LabelPrototypeNetwork):
        z_SD = combine.mix(x_S3D, has_S3)
    else:  # a sum, or one's own: what cannot leave the text out gets zeros for it
        h_SD, c_SD, v_SD = (x_S3D * has_S3[:, :, None]).unbind(dim=1)
        z_SD = combine(h_SD, c_SD, v_SD, has_S3[:, 1], has_S3[:, 2])
    scores: list[float] = (functional.normalize(z_SD.float(), dim=1) @ h_D).tolist()
    return scores
