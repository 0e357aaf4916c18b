"""Prototypes for labels as they now are: of the trained ones as training left them, of the others as new ones are made.

Shapes: M labels, D dimensions.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from .fair_length import fair_lengths
from .new_prototypes import Neighbours, label_vectors, trained_prototypes, untrained_prototypes
from .per_label import IdArray, PerLabel

if TYPE_CHECKING:
    from .model import PrimeModel


def with_prototypes(model: PrimeModel, some: PerLabel, rows_M: IdArray | None = None) -> PerLabel:
    """The same labels with prototypes; `rows_M` says where in the model they are, if they are there already."""
    h_MD = label_vectors(model, some.labels.texts)
    centroids, trained_M, free_vector_of_M = some.centroids, some.trained_L, some.free_vector_of_L
    z_MD = model.mixture.of(trained_prototypes(model, h_MD, centroids, free_vector_of_M), h_MD, centroids.c_LD)
    if not bool(trained_M.all()):
        neighbours, own_M = Neighbours(model), None if rows_M is None else torch.from_numpy(rows_M)
        free_vector_of_M = torch.where(trained_M, free_vector_of_M, neighbours.free_vectors(h_MD, own_M))
        y_MD = untrained_prototypes(model, h_MD, centroids, free_vector_of_M)
        y_MD = y_MD * fair_lengths(model, neighbours, centroids.count_L)[:, None].to(y_MD)
        z_MD = torch.where(trained_M[:, None], z_MD, y_MD)
    w_MD = moved_classifier(some, z_MD, new=rows_M is None) if model.classifier_LD is not None else None
    return dataclasses.replace(some, free_vector_of_L=free_vector_of_M, prototypes_LD=z_MD, classifier_LD=w_MD)


def moved_classifier(some: PerLabel, z_MD: Tensor, *, new: bool) -> Tensor:
    """The classifier's vectors follow their prototypes: that of an untrained label is its prototype, that of a trained
    one keeps what it has learned beside it."""
    if new or some.classifier_LD is None:
        return z_MD
    moved_MD = functional.normalize(some.classifier_LD + z_MD - some.prototypes_LD, dim=1)
    return torch.where(some.trained_L[:, None], moved_MD, z_MD)
