"""All that is learned, in one module: encoder, Label Prototype Network and free vectors.

Shapes: L labels in all, M labels of a batch, F free vectors, D dimensions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..config import PrototypeSettings
from .centroids import Centroids
from .encoder import TextEncoder
from .prototypes import combiner


class PrimeNetwork(nn.Module):
    """Turns labels into prototypes. Centroids come from outside: gradient flows through text and free vectors alone."""

    free_vector_of_L: Tensor

    def __init__(self, encoder: TextEncoder, settings: PrototypeSettings, free_vector_of_L: Tensor) -> None:
        super().__init__()
        L, D = len(free_vector_of_L), encoder.dim
        self.encoder, self.settings = encoder, settings
        self.label_prototypes = combiner(D, settings) if settings.enabled else None
        F = num_free_vectors(settings, L)
        self.free_vectors_FD = nn.Parameter(_xavier_uniform(F, D), requires_grad=F > 0)
        self.register_buffer("free_vector_of_L", free_vector_of_L.long())

    def prototypes(self, h_MD: Tensor, labels_M: Tensor, centroids: Centroids) -> Tensor:
        """Normalised z_MD of some labels from their text embeddings h_MD (un-normalised)."""
        if self.label_prototypes is None:
            return functional.normalize(h_MD, dim=1)
        settings = self.settings
        has_c_M, c_MD = torch.zeros_like(labels_M, dtype=torch.bool), torch.zeros_like(h_MD)
        has_v_M, v_MD = has_c_M, c_MD
        if settings.centroid:
            has_c_M = centroids.has_L[labels_M] & self._kept(labels_M, settings.drop_centroid)
            c_MD = centroids.c_LD[labels_M]
        if settings.free_vector:
            has_v_M = self._kept(labels_M, settings.drop_free_vector)
            v_MD = functional.embedding(self.free_vector_of_L[labels_M], self.free_vectors_FD)
        z_MD = self.label_prototypes(h_MD, c_MD, v_MD, has_c_M, has_v_M)
        return functional.normalize(z_MD.float(), dim=1)

    def _kept(self, labels_M: Tensor, drop: float) -> Tensor:
        """In training a token is left out at random, so that labels without it are nothing new at prediction."""
        if not self.training or drop == 0:
            return torch.ones_like(labels_M, dtype=torch.bool)
        return torch.rand(len(labels_M), device=labels_M.device) >= drop


def num_free_vectors(settings: PrototypeSettings, num_labels: int) -> int:
    """F: as many as the settings ask for, never more than there are labels, none where they are not used."""
    used = settings.enabled and settings.free_vector
    return min(settings.num_free_vectors, num_labels) if used else 0


def _xavier_uniform(rows: int, columns: int) -> Tensor:
    bound = (6 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-bound, bound)
