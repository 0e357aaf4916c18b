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

    def __init__(
        self,
        encoder: TextEncoder,
        settings: PrototypeSettings,
        free_vector_of_L: Tensor,
        num_vectors: int | None = None,  # F where it is known: labels come and go, free vectors stay
    ) -> None:
        super().__init__()
        L, D = len(free_vector_of_L), encoder.dim
        self.encoder, self.settings = encoder, settings
        self.label_prototypes = combiner(D, settings) if settings.enabled else None
        F = num_free_vectors(settings, L) if num_vectors is None else num_vectors
        self.free_vectors_FD = nn.Parameter(_xavier_uniform(F, D), requires_grad=F > 0)
        self.register_buffer("free_vector_of_L", free_vector_of_L.long())

    def prototypes(self, h_MD: Tensor, labels_M: Tensor, centroids: Centroids) -> Tensor:
        """Normalised z_MD of some labels from their text embeddings h_MD (un-normalised)."""
        has_c_M = centroids.count_L[labels_M] > 0
        return self.compose(h_MD, centroids.c_LD[labels_M], has_c_M, self.free_vector_of_L[labels_M])

    def compose(self, h_MD: Tensor, c_MD: Tensor, has_c_M: Tensor, free_vector_of_M: Tensor) -> Tensor:
        """The same for any labels, also such that are no rows yet. A free vector of -1 is none."""
        if self.label_prototypes is None:
            return functional.normalize(h_MD, dim=1)
        settings = self.settings
        nothing_M, has_v_M, v_MD = torch.zeros_like(has_c_M), torch.zeros_like(has_c_M), torch.zeros_like(h_MD)
        has_c_M = has_c_M & self._kept(has_c_M, settings.drop_centroid) if settings.centroid else nothing_M
        if settings.free_vector:
            has_v_M = (free_vector_of_M >= 0) & self._kept(has_c_M, settings.drop_free_vector)
            v_MD = functional.embedding(free_vector_of_M.clamp(min=0), self.free_vectors_FD)
        z_MD = self.label_prototypes(h_MD, c_MD, v_MD, has_c_M, has_v_M)
        return functional.normalize(z_MD.float(), dim=1)

    def _kept(self, like_M: Tensor, drop: float) -> Tensor:
        """In training a token is left out at random, so that labels without it are nothing new at prediction."""
        if not self.training or drop == 0:
            return torch.ones_like(like_M)
        return torch.rand(len(like_M), device=like_M.device) >= drop


def num_free_vectors(settings: PrototypeSettings, num_labels: int) -> int:
    """F: as many as the settings ask for, never more than there are labels, none where they are not used."""
    used = settings.enabled and settings.free_vector
    return min(settings.num_free_vectors, num_labels) if used else 0


def _xavier_uniform(rows: int, columns: int) -> Tensor:
    bound = (6 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-bound, bound)
