"""How much memory, words and the classifier count beside the prototypes: the weights with the best nDCG@5 on held-out
queries.

Shapes: Q queries, C candidates a query.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..data.corpus import Split
from ..evaluation.calibrate import right_answers
from ..fusion.blend import MODES, Blend, Weights
from ..fusion.candidates import Floats, Ids, best_of
from ..model.model import PrimeModel
from ..model.voices import Heard, Voices, added_up
from .fit_judge import fit_judge, held_out_judgement
from .ndcg import TOP, Ndcg

STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the classifier
TEMPERATURES = (0.03, 0.05, 0.1)
MOST_QUERIES = 5000


def choose_blend(model: PrimeModel, held_out: Split) -> Blend:
    """The best weights of every mode that the model's voices allow, 0 included, and the best mode; of equals the
    one with fewer voices."""
    trial = _Trial(model, held_out)
    parts = STEPS if trial.memory else (0.0,)
    memory = _best(trial, (Weights(memory=part, temperature=t) for t in TEMPERATURES for part in parts))
    lexical = _best(trial, (Weights(lexical=words) for words in STEPS))
    weights, share = {"theta": Weights(), "memory": memory, "lexical": lexical}, 0.0
    if model.classifier_LD is not None:
        share = max(SHARES, key=trial.of_cosines)
        alone = (Weights(memory=part, temperature=t, classifier=1.0) for t in TEMPERATURES for part in parts)
        weights |= {"W": Weights(classifier=1.0), "theta+W": Weights(classifier=share), "W+memory": _best(trial, alone)}
    everything = (
        Weights(part, words, memory.temperature, of_classifier)
        for of_classifier, part, words in itertools.product(sorted({0.0, share}), parts, STEPS)
    )
    weights["all"] = _best(trial, everything)
    scores = {mode: trial(of_mode) for mode, of_mode in weights.items()}
    weights["all"], scores["all"] = trial.corrected(weights["all"], scores["all"])
    best = max((mode for mode in MODES if mode in scores), key=lambda mode: scores[mode])  # the first of equals
    return Blend(weights, best)


def _best(trial: _Trial, choices: Iterable[Weights]) -> Weights:
    return max(choices, key=trial)


class _Trial:
    """nDCG@5 of the held-out queries by weights."""

    def __init__(self, model: PrimeModel, held_out: Split) -> None:
        self.model, self.voices = model, Voices(model)
        self.queries = held_out.take(np.arange(min(len(held_out), MOST_QUERIES)))
        self.h_QD = model.encode(self.queries.texts)
        self.heard: dict[float, Heard] = {}
        self.shares: dict[tuple[float, float], Floats | None] = {}
        self.everything = Weights(memory=float(model.settings.fusion.memory), lexical=1.0)
        self.memory = self._hear(0.0).neighbours is not None
        self.ndcg = Ndcg(self.queries.positives)

    def __call__(self, weights: Weights) -> float:
        return self._of_scores(weights, self._sum(weights))

    def of_cosines(self, classifier: float) -> float:
        """Without memory and words, which then need not be asked."""
        return self._of_ids(self._search(TOP, classifier)[0])

    def _hear(self, classifier: float) -> Heard:
        """Once for each share of the classifier: with it the candidates change."""
        if classifier not in self.heard:
            found = self._search(self.model.settings.fusion.candidates, classifier)
            known = next((heard.neighbours for heard in self.heard.values()), None)
            heard = self.voices.hear(self.queries.texts, self.h_QD, *found, self.everything, known)
            self.heard[classifier] = heard
            self.shares |= {(classifier, one): self.voices.shares(heard, one) for one in TEMPERATURES}
        return self.heard[classifier]

    def corrected(self, weights: Weights, score: float) -> tuple[Weights, float]:
        """With a judge, where one that was fitted on other queries is better than none; and what it reached so."""
        heard = self._hear(weights.classifier)
        if not self.model.settings.fusion.judge or (heard.neighbours is None and heard.lexical_QC is None):
            return weights, score
        sum_QC, right_QC = self._sum(weights), right_answers(heard.ids_QC, self.queries.positives)
        x_QCF = self.voices.features(heard, sum_QC)
        added_QC = held_out_judgement(x_QCF, right_QC)
        reached = -np.inf if added_QC is None else self._of_scores(weights, sum_QC + added_QC)
        return (weights, score) if reached <= score else (replace(weights, judge=fit_judge(x_QCF, right_QC)), reached)

    def _search(self, top: int, classifier: float) -> tuple[Ids, Floats]:
        return self.model.search(self.h_QD, top, self.queries.filtered, classifier=classifier)

    def _sum(self, weights: Weights) -> Floats:
        heard = self._hear(weights.classifier)
        return added_up(heard, self.shares[weights.classifier, weights.temperature], weights)

    def _of_scores(self, weights: Weights, scores_QC: Floats) -> float:
        return self._of_ids(best_of(self._hear(weights.classifier).ids_QC, scores_QC, TOP)[0])

    def _of_ids(self, ids_QK: Ids) -> float:
        return self.ndcg(right_answers(ids_QK, self.queries.positives))
