"""What else than the prototypes a model has to say, and what all of it says together.

Shapes: Q queries, C candidates a query, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..fusion.blend import Weights
from ..fusion.candidates import Floats, Ids
from ..fusion.judge import Judge, features
from ..fusion.votes import Votes

if TYPE_CHECKING:
    from .model import PrimeModel

Neighbours = tuple[Ids, Floats]
JUDGED_AT = 0.05  # the temperature of the votes that a judge is shown


@dataclass(frozen=True)
class Heard:
    """What the voices say of the candidates of some queries, before it is known how much each counts."""

    ids_QC: Ids
    cosine_QC: Floats
    neighbours: Neighbours | None
    lexical_QC: Floats | None

    def all_of(self, judge: Judge) -> bool:
        """Whether everything is there that this judge looks at: without a memory, as one that had it, it is silent."""
        no_votes, no_words = self.neighbours is None, self.lexical_QC is None
        return not (judge.asks_memory and no_votes) and not (judge.asks_words and no_words)


class Voices:
    """The voices of one model; what they need is made when it is first asked for."""

    def __init__(self, model: PrimeModel) -> None:
        self.model = model

    @cached_property
    def votes(self) -> Votes | None:
        memory, device = self.model.memory, self.model.device
        if memory is None or len(memory) == 0:
            return None
        h_ND = memory.h_ND.to(device) if device.type == "cuda" else memory.h_ND.float()  # CPUs are slow at halves
        return Votes(h_ND, memory.positives, self.model.settings.fusion.neighbours)

    def hear(
        self,
        texts: Sequence[str],
        h_QD: Floats,
        ids_QC: Ids,
        cosine_QC: Floats,
        wanted: Weights,
        known: Neighbours | None = None,
    ) -> Heard:
        """Asks those that count. The nearest training queries are the same for all candidates: where they
        are `known` they are not searched again."""
        lexical, votes = self.model.lexical, self.votes if wanted.asks_memory else None
        return Heard(
            ids_QC,
            cosine_QC,
            None if votes is None else known or votes.neighbours(h_QD),
            None if lexical is None or not wanted.asks_words else lexical.scores(texts, ids_QC),
        )

    def shares(self, heard: Heard, temperature: float) -> Floats | None:
        """The memory's votes for each candidate; None where it was not asked."""
        if heard.neighbours is None or self.votes is None:
            return None
        return self.votes.scores(heard.neighbours, heard.ids_QC, temperature)

    def together(self, heard: Heard, weights: Weights) -> Floats:
        """The candidates' scores; -inf stays -inf."""
        sum_QC = added_up(heard, self.shares(heard, weights.temperature) if weights.memory else None, weights)
        if weights.judge is None or not heard.all_of(weights.judge):
            return sum_QC
        return sum_QC + weights.judge(self.features(heard, sum_QC))

    def features(self, heard: Heard, sum_QC: Floats) -> Floats:
        """What a judge looks at; `sum_QC` is what the voices' weights alone make."""
        votes: tuple[Floats, ...] | None = None
        if heard.neighbours is not None and self.votes is not None:
            votes = self.votes.with_nearest(heard.neighbours, heard.ids_QC, JUDGED_AT)
            votes = (*votes, self.votes.queries_of(heard.ids_QC))
        return features(sum_QC, heard.cosine_QC, heard.lexical_QC, votes)


def added_up(heard: Heard, share_QC: Floats | None, weights: Weights) -> Floats:
    """Cosines and what the other voices say, each with its weight."""
    scores_QC = heard.cosine_QC
    if share_QC is not None and weights.memory:
        scores_QC = scores_QC + weights.memory * share_QC
    if heard.lexical_QC is not None and weights.lexical:
        scores_QC = scores_QC + weights.lexical * heard.lexical_QC
    return scores_QC
