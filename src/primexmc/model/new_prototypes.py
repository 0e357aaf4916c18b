"""Prototypes of labels that were not trained, from their texts and perhaps a few example queries.

The Label Prototype Network has only seen centroids that the query itself was part of, so it leans on them: alone it is
worse with one example than with none. A label's text and its examples, put together as they are, make up for that.
Shapes: M labels, L labels of the model, K neighbours, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from ..retrieval.exact import ExactIndex
from .centroids import Centroids
from .encode import ROWS_PER_STEP, TextReader, autocast, wants_bf16

if TYPE_CHECKING:
    from .model import PrimeModel

TEXT_WORTH = 2  # a label's text counts as so many examples
NUM_VOTES = 5


def label_vectors(model: PrimeModel, texts: Sequence[str]) -> Tensor:
    """Un-normalised h_MD of label texts, cut and prefixed as in training."""
    settings = model.settings
    reader = TextReader(model.network.encoder, settings.data.label_tokens, settings.encoder.label_prefix)
    return reader.encode(texts, model.device, bf16=wants_bf16(settings.training.precision, model.device))


@torch.no_grad()
def trained_prototypes(model: PrimeModel, h_MD: Tensor, centroids: Centroids, free_vector_of_M: Tensor) -> Tensor:
    """Normalised z_MD as the network makes them."""
    bf16 = wants_bf16(model.settings.training.precision, model.device)
    columns = (h_MD, centroids.c_LD, centroids.has_L, free_vector_of_M)
    starts = range(0, max(1, len(h_MD)), ROWS_PER_STEP)
    with autocast(model.device, bf16):
        blocks = [model.network.compose(*(rows[at : at + ROWS_PER_STEP] for rows in columns)) for at in starts]
        z_MD = torch.cat(blocks)
    return z_MD.to(model.prototypes_LD.dtype)


def untrained_prototypes(model: PrimeModel, h_MD: Tensor, centroids: Centroids, free_vector_of_M: Tensor) -> Tensor:
    """Normalised z_MD: text and examples as they are, and in equal parts what the network makes of them."""
    seen_MD = text_and_examples(h_MD, centroids)
    if model.network.label_prototypes is None:
        return seen_MD.to(model.prototypes_LD.dtype)
    z_MD = trained_prototypes(model, h_MD, centroids, free_vector_of_M)
    return functional.normalize(seen_MD + z_MD, dim=1).to(model.prototypes_LD.dtype)


def text_and_examples(h_MD: Tensor, centroids: Centroids) -> Tensor:
    """Their weighted mean, normalised."""
    examples_MD = centroids.c_LD * centroids.count_L[:, None]
    return functional.normalize(examples_MD + TEXT_WORTH * functional.normalize(h_MD, dim=1), dim=1)


class Neighbours:
    """The free vectors that the model's labels lend to others with similar texts."""

    def __init__(self, model: PrimeModel) -> None:
        self.h_LD = label_vectors(model, model.labels.texts)
        self.free_vector_of_L = model.network.free_vector_of_L.cpu()
        self._index = ExactIndex(functional.normalize(self.h_LD, dim=1))

    def free_vectors(self, h_MD: Tensor, own_M: Tensor | None = None) -> Tensor:
        """What the nearest labels vote for, each with its score; a label does not vote for itself (`own_M`)."""
        votes = NUM_VOTES + (own_M is not None)
        ids_MK, scores_MK = map(torch.from_numpy, self._index.search(functional.normalize(h_MD, dim=1), votes))
        weight_MK = scores_MK.clamp(min=0).masked_fill(ids_MK < 0, 0)
        if own_M is not None:
            weight_MK = weight_MK.masked_fill(ids_MK == own_M.cpu()[:, None], 0)
        vector_MK = self.free_vector_of_L[ids_MK.clamp(min=0)]
        same_MKK = vector_MK[:, :, None] == vector_MK[:, None, :]
        winner_M1 = (same_MKK * weight_MK[:, None, :]).sum(dim=2).argmax(dim=1, keepdim=True)
        return vector_MK.gather(1, winner_M1)[:, 0].to(h_MD.device)
