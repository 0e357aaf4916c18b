"""The vectors that a search compares queries with: prototypes, the classifier's, or a weighted sum of both.

A query's cosines with both, weighted and added up, are its product with the weighted sum of the two vectors: one search
finds exactly the labels that are best by both, and one index is enough.
Shapes: L labels, D dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..fusion.blend import Blend

if TYPE_CHECKING:
    from .model import PrimeModel


def vectors_of(model: PrimeModel, share: float) -> Tensor:
    """(1 - share) z_LD + share W_LD; z_LD where the model has no classifier."""
    z_LD, w_LD = model.prototypes_LD, model.classifier_LD
    if share == 0 or w_LD is None:
        return z_LD
    return w_LD if share == 1 else (1 - share) * z_LD + share * w_LD


def label_parts(model: PrimeModel, label: int, share: float) -> Tensor:
    """2 x D: what the prototype and the classifier put into one label's vector; it is their sum."""
    z_D, w_LD = model.prototypes_LD[label], model.classifier_LD
    if w_LD is None:
        return torch.stack([z_D, torch.zeros_like(z_D)])
    return torch.stack([(1 - share) * z_D, share * w_LD[label]])


def usual_share(model: PrimeModel) -> float:
    """The classifier's share in the mode that the model answers in unless it is told otherwise."""
    if model.classifier_LD is None:
        return 0.0
    return (model.blend or Blend()).of(model.settings.search.mode).classifier
