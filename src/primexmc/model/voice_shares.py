"""What each voice adds to the score of one label: prototype, classifier, the memory's votes, the words, the judge.

Shapes: Q texts, K nearest training queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .encode import as_float32
from .model import PrimeModel
from .vectors import label_parts
from .voices import Heard

Floats = NDArray[np.float32]


class VoiceShare(NamedTuple):
    """A voice, by the name of its mode, and what it adds to the score; all shares add up to it."""

    voice: str
    share: float


class WordVote(NamedTuple):
    """A word of the text, and what the linear classifier on words adds for it."""

    word: str
    adds: float


class Asked:
    """What the voices of a model, in its mode, say of one label for some texts."""

    def __init__(self, model: PrimeModel, texts: Sequence[str], label: int) -> None:
        self.model, self.texts, self.label, self.weights = model, texts, label, model.weights
        self.h_QD = model.encode(texts)
        self.cosines_Q2 = self.h_QD @ as_float32(label_parts(model, label, self.weights.classifier)).T
        cosine_Q1 = self.cosines_Q2.sum(1, keepdims=True)
        ids_Q1 = np.full((len(texts), 1), label)
        self.heard: Heard = model.voices.hear(texts, self.h_QD, ids_Q1, cosine_Q1, self.weights)

    @property
    def prototype_weight(self) -> float:
        """What the classifier leaves to the prototype."""
        return 1.0 if self.model.classifier_LD is None else 1 - self.weights.classifier

    @property
    def scores_Q(self) -> Floats:
        """What `rank` gives the label, if the prototypes propose it."""
        return self.model.voices.together(self.heard, self.weights)[:, 0]

    def shares(self) -> list[VoiceShare]:
        """Of the first text's score, of those voices that have a weight."""
        heard, weights = self.heard, self.weights
        found = [VoiceShare("prototype", float(self.cosines_Q2[0, 0]))]
        if self.model.classifier_LD is not None and weights.classifier:
            found.append(VoiceShare("classifier", float(self.cosines_Q2[0, 1])))
        votes_QC = self.model.voices.shares(heard, weights.temperature)
        if votes_QC is not None and weights.memory:
            found.append(VoiceShare("memory", weights.memory * float(votes_QC[0, 0])))
        if heard.lexical_QC is not None and weights.lexical:
            found.append(VoiceShare("lexical", weights.lexical * float(heard.lexical_QC[0, 0])))
        if weights.judge is not None and heard.all_of(weights.judge):
            found.append(VoiceShare("judge", float(self.scores_Q[0]) - sum(voice.share for voice in found)))
        return found

    def votes(self) -> dict[int, float]:
        """What each training query near the first text adds, by its row: 0 for those without the label."""
        votes = self.model.voices.votes
        if self.heard.neighbours is None or votes is None or not self.weights.memory:
            return {}
        near_K, share_K = self.heard.neighbours[0][0], votes.shares(self.heard.neighbours, self.weights.temperature)[0]
        with_label_K = np.asarray(votes.labels_NL[near_K][:, [self.label]].todense())[:, 0] > 0
        adds_K = self.weights.memory * share_K * with_label_K
        return dict(zip(near_K.tolist(), adds_K.tolist(), strict=True))

    def word_votes(self) -> tuple[list[WordVote], float]:
        """What each known word of the first text adds, the most first, and what the label has without any word."""
        lexical = self.model.lexical
        if self.heard.lexical_QC is None or lexical is None or not self.weights.lexical:
            return [], 0.0
        words, bias = lexical.votes(self.texts[0], self.label)
        votes = [WordVote(word, self.weights.lexical * value) for word, value in words if value]
        return sorted(votes, key=lambda vote: -abs(vote.adds)), self.weights.lexical * bias
