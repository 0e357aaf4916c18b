"""How much memory, words and the classifier count beside the prototypes: the weights with the best nDCG@5 on held-out
queries.

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
from ..fusion.candidates import Floats, Ids, best_of
from ..model.model import PrimeModel
from ..model.voices import Heard, Voices, added_up

STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the classifier
TEMPERATURES = (0.03, 0.05, 0.1)
TOP = 5
MOST_QUERIES = 5000


def choose_blend(model: PrimeModel, held_out: Split) -> Blend:
    """The best weights of every mode that the model's voices allow, 0 included, and the best mode; of equals the
    one with fewer voices."""
    judge = _Judge(model, held_out)
    parts = STEPS if judge.memory else (0.0,)
    memory = _best(judge, (Weights(memory=part, temperature=t) for t in TEMPERATURES for part in parts))
    lexical = _best(judge, (Weights(lexical=words) for words in STEPS))
    weights, share = {"theta": Weights(), "memory": memory, "lexical": lexical}, 0.0
    if model.classifier_LD is not None:
        share = max(SHARES, key=judge.of_cosines)
        alone = (Weights(memory=part, temperature=t, classifier=1.0) for t in TEMPERATURES for part in parts)
        weights |= {"W": Weights(classifier=1.0), "theta+W": Weights(classifier=share), "W+memory": _best(judge, alone)}
    everything = (
        Weights(part, words, memory.temperature, of_classifier)
        for of_classifier, part, words in itertools.product(sorted({0.0, share}), parts, STEPS)
    )
    weights["all"] = _best(judge, everything)
    best = max(
        (mode for mode in MODES if mode in weights), key=lambda mode: judge(weights[mode])
    )  # the first of equals
    return Blend(weights, best)


def _best(judge: _Judge, choices: Iterable[Weights]) -> Weights:
    return max(choices, key=judge)


class _Judge:
    """nDCG@5 of the held-out queries by weights."""

    def __init__(self, model: PrimeModel, held_out: Split) -> None:
        self.model, self.voices = model, Voices(model)
        self.queries = held_out.take(np.arange(min(len(held_out), MOST_QUERIES)))
        self.h_QD = model.encode(self.queries.texts)
        self.heard: dict[float, Heard] = {}
        self.shares: dict[tuple[float, float], Floats | None] = {}
        self.everything = Weights(memory=float(model.settings.fusion.memory), lexical=1.0)
        self.memory = self._hear(0.0).neighbours is not None
        num_positives_Q = np.diff(positives_only(self.queries.positives).indptr)
        self.discount_K: FloatArray = 1 / np.log2(np.arange(TOP) + 2.0)
        full = np.concatenate([[1.0], self.discount_K.cumsum()])
        self.full_Q = full[np.minimum(num_positives_Q, TOP)]

    def __call__(self, weights: Weights) -> float:
        heard = self._hear(weights.classifier)
        scores_QC = added_up(heard, self.shares[weights.classifier, weights.temperature], weights)
        return self._ndcg(best_of(heard.ids_QC, scores_QC, TOP)[0])

    def of_cosines(self, classifier: float) -> float:
        """Without memory and words, which then need not be asked."""
        return self._ndcg(self._search(TOP, classifier)[0])

    def _hear(self, classifier: float) -> Heard:
        """Once for each share of the classifier: with it the candidates change."""
        if classifier not in self.heard:
            found = self._search(self.model.settings.fusion.candidates, classifier)
            known = next((heard.neighbours for heard in self.heard.values()), None)
            heard = self.voices.hear(self.queries.texts, self.h_QD, *found, self.everything, known)
            self.heard[classifier] = heard
            self.shares |= {(classifier, one): self.voices.shares(heard, one) for one in TEMPERATURES}
        return self.heard[classifier]

    def _search(self, top: int, classifier: float) -> tuple[Ids, Floats]:
        return self.model.search(self.h_QD, top, self.queries.filtered, classifier=classifier)

    def _ndcg(self, ids_QK: Ids) -> float:
        right_QK = right_answers(ids_QK, self.queries.positives)
        return float(((right_QK * self.discount_K).sum(1) / self.full_Q).mean())
