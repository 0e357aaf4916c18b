"""Explanations: why a model gives a label to a text.

Shapes: W words, D dimensions; a label has up to 3 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

from .contributions import Contribution, Tokens, contributions
from .mixture import NO_MIXTURE
from .model import PrimeModel
from .near_queries import NearQuery, near_queries
from .new_prototypes import label_vectors
from .voice_shares import Asked, VoiceShare, WordVote

MAX_WORDS = 48


class Word(NamedTuple):
    """A word of the text, and how much the score falls when it is left out."""

    word: str
    change: float


@dataclass(frozen=True)
class Explanation:
    """The voices' shares add up to the score, the parts' to the prototype's share: the product with the text."""

    score: float
    voices: list[VoiceShare]
    parts: list[Contribution]
    words: list[Word]
    word_votes: list[WordVote]  # by the linear classifier on words
    bias: float  # what that says of the label without any word
    nearest: list[NearQuery]  # of all training queries
    nearest_with_label: list[NearQuery]


def explain(model: PrimeModel, text: str, label: int, num_queries: int = 5, *, words: bool = True) -> Explanation:
    """Looks at the voices of the model's mode, the prototype's parts, the text's words (the first 48) and the training
    queries nearby."""
    asked = Asked(model, [text], label)
    h_D, score = torch.from_numpy(asked.h_QD[0]).to(model.device), float(asked.scores_Q[0])
    near = near_queries(model.memory, h_D, label, num_queries, asked.votes()) if model.memory else ([], [])
    nearest, nearest_with_label = near
    word_votes, bias = asked.word_votes()
    return Explanation(
        score=score,
        voices=asked.shares(),
        parts=contributions(h_D, _tokens(model, label, asked.prototype_weight), model.network),
        words=_words(model, text, label, score) if words else [],
        word_votes=word_votes,
        bias=bias,
        nearest=nearest,
        nearest_with_label=nearest_with_label,
    )


def _tokens(model: PrimeModel, label: int, weight: float) -> Tokens:
    """The label's text, centroid and free vector as the network takes them, and which it has; the prototype that they
    make counts with this weight."""
    network, settings, centroids = model.network, model.settings.prototypes, model.centroids
    h_1D = label_vectors(model, [model.labels.texts[label]])
    if settings.normalise_text:
        h_1D = functional.normalize(h_1D, dim=1)
    c_1D, v_1D = centroids.c_LD[label][None].to(h_1D), torch.zeros_like(h_1D)
    has_free_vector = settings.enabled and settings.free_vector
    if has_free_vector:
        v_1D = network.free_vectors_FD[network.free_vector_of_L[label]][None].to(h_1D)
    trained = model.trained_L is None or bool(model.trained_L[label])
    length = 1.0 if trained else float(model.prototypes_LD[label].float().norm())
    has_centroid = bool(centroids.has_L[label]) and (not trained or (settings.enabled and settings.centroid))
    return Tokens(
        torch.cat([h_1D, c_1D, v_1D]),
        (True, has_centroid, has_free_vector),
        weight * length,
        None if trained else int(centroids.count_L[label]),
        model.mixture if trained else NO_MIXTURE,
    )


def _words(model: PrimeModel, text: str, label: int, score: float) -> list[Word]:
    """Each word left out in turn; what the text is cut at counts for nothing."""
    words = text.split()
    shown = words[:MAX_WORDS]
    if len(words) < 2:
        return [Word(word, score) for word in shown]
    without = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(shown))]
    s_W = Asked(model, without, label).scores_Q
    return [Word(word, score - left) for word, left in zip(shown, s_W.tolist(), strict=True)]
