"""Prototypes for labels as they now are: of the trained ones as training left them, of the others as new ones are made.

Shapes: M labels, D dimensions.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch

from .fair_length import fair_lengths
from .new_prototypes import Neighbours, label_vectors, trained_prototypes, untrained_prototypes
from .per_label import IdArray, PerLabel

if TYPE_CHECKING:
    from .model import PrimeModel


def with_prototypes(model: PrimeModel, some: PerLabel, rows_M: IdArray | None = None) -> PerLabel:
    """The same labels with prototypes; `rows_M` says where in the model they are, if they are there already."""
    h_MD = label_vectors(model, some.labels.texts)
    centroids, trained_M, free_vector_of_M = some.centroids, some.trained_L, some.free_vector_of_L
    z_MD = trained_prototypes(model, h_MD, centroids, free_vector_of_M)
    if not bool(trained_M.all()):
        neighbours, own_M = Neighbours(model), None if rows_M is None else torch.from_numpy(rows_M)
        free_vector_of_M = torch.where(trained_M, free_vector_of_M, neighbours.free_vectors(h_MD, own_M))
        y_MD = untrained_prototypes(model, h_MD, centroids, free_vector_of_M)
        y_MD = y_MD * fair_lengths(model, neighbours, centroids.count_L)[:, None].to(y_MD)
        z_MD = torch.where(trained_M[:, None], z_MD, y_MD)
    return dataclasses.replace(some, free_vector_of_L=free_vector_of_M, prototypes_LD=z_MD)
