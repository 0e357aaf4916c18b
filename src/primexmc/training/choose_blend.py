"""How much memory and words count beside the prototypes: the weights with the best nDCG@5 on held-out queries.

Shapes: Q queries, C candidates a query.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from ..data.corpus import Split
from ..evaluation.calibrate import right_answers
from ..evaluation.hits import FloatArray, positives_only
from ..fusion.blend import MODES, Blend, Weights
from ..fusion.candidates import best_of
from ..model.model import PrimeModel
from ..model.voices import Heard, Voices, added_up

STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
TEMPERATURES = (0.03, 0.05, 0.1)
TOP = 5
MOST_QUERIES = 5000


def choose_blend(model: PrimeModel, held_out: Split) -> Blend:
    """The best weights of every mode that the model's voices allow, 0 included, and the best mode; of equals the
    one with fewer voices."""
    judge = _Judge(model, held_out)
    shares = STEPS if judge.memory else (0.0,)
    memory = _best(judge, (Weights(memory=share, temperature=t) for t in TEMPERATURES for share in shares))
    lexical = _best(judge, (Weights(lexical=words) for words in STEPS))
    both = (Weights(share, words, memory.temperature) for share, words in itertools.product(shares, STEPS))
    weights = {"theta": Weights(), "memory": memory, "lexical": lexical, "all": _best(judge, both)}
    best = max(MODES, key=lambda mode: judge(weights[mode]))  # the first of equals
    return Blend(weights, best)


def _best(judge: _Judge, choices: Iterable[Weights]) -> Weights:
    return max(choices, key=judge)


class _Judge:
    """nDCG@5 of the held-out queries by weights."""

    def __init__(self, model: PrimeModel, held_out: Split) -> None:
        queries = held_out.take(np.arange(min(len(held_out), MOST_QUERIES)))
        everything = Weights(memory=float(model.settings.fusion.memory), lexical=1.0)
        h_QD = model.encode(queries.texts)
        ids_QC, cosine_QC = model.search(h_QD, model.settings.fusion.candidates, queries.filtered)
        voices = Voices(model)
        self.heard: Heard = voices.hear(queries.texts, h_QD, ids_QC, cosine_QC, everything)
        self.shares = {temperature: voices.shares(self.heard, temperature) for temperature in TEMPERATURES}
        self.memory = self.heard.neighbours is not None
        self.positives = queries.positives
        num_positives_Q = np.diff(positives_only(queries.positives).indptr)
        self.discount_K: FloatArray = 1 / np.log2(np.arange(TOP) + 2.0)
        full = np.concatenate([[1.0], self.discount_K.cumsum()])
        self.full_Q = full[np.minimum(num_positives_Q, TOP)]

    def __call__(self, weights: Weights) -> float:
        scores_QC = added_up(self.heard, self.shares[weights.temperature], weights)
        ids_QK, _ = best_of(self.heard.ids_QC, scores_QC, TOP)
        right_QK = right_answers(ids_QK, self.positives)
        return float(((right_QK * self.discount_K).sum(1) / self.full_Q).mean())
