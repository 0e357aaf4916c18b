"""PrimeModel: a trained model that answers. Text -> vector -> nearest prototypes -> labels by name.

Shapes: Q queries, L labels, K answers a query, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional

from ..config import Settings
from ..data.corpus import Labels
from ..errors import UserError
from ..retrieval.exact import ExactIndex
from .centroids import Centroids
from .encode import TextReader, as_float32, pick_device, wants_bf16
from .memory import Memory
from .network import PrimeNetwork

FloatArray = npt.NDArray[np.float32]
IdArray = npt.NDArray[np.int64]


class Prediction(NamedTuple):
    """One answer: the label's name, its uid, its row among the labels, and the cosine of query and prototype."""

    label: str
    uid: str
    id: int
    score: float


@dataclass
class PrimeModel:
    """Labels, the trained network and the finished prototypes."""

    settings: Settings
    labels: Labels
    label_counts_L: IdArray  # training queries of each label, for propensities
    num_train_queries: int
    network: PrimeNetwork
    prototypes_LD: Tensor  # normalised
    centroids: Centroids  # that went into the prototypes
    memory: Memory | None = None  # of the training queries
    facts: dict[str, Any] = field(default_factory=dict)  # how it was made: data, epochs, validation, seconds

    def __post_init__(self) -> None:
        self.network.eval().requires_grad_(False)
        self._index = ExactIndex(self.prototypes_LD)
        settings = self.settings
        self._reader = TextReader(self.network.encoder, settings.data.query_tokens, settings.encoder.query_prefix)

    @property
    def device(self) -> torch.device:
        return self.prototypes_LD.device

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """h_QD of query texts, each of length 1."""
        if isinstance(texts, str):
            raise UserError('encode and predict take a list of texts; for one text write ["..."].')
        bf16 = wants_bf16(self.settings.training.precision, self.device)
        h_QD = self._reader.encode(texts, self.device, bf16=bf16)
        return as_float32(functional.normalize(h_QD, dim=1))

    def search(self, h_QD: FloatArray, top: int, filtered: csr_matrix | None = None) -> tuple[IdArray, FloatArray]:
        """Ids and scores of the nearest prototypes, best first; -1 where there are none."""
        return self._index.search(torch.from_numpy(h_QD).to(self.device), top, filtered)

    def rank(self, texts: Sequence[str], top: int, filtered: csr_matrix | None = None) -> tuple[IdArray, FloatArray]:
        """Ids and scores of each text's best labels, best first, without pairs that are filtered; -1 = no more."""
        return self.search(self.encode(texts), top, filtered)

    def predict(self, texts: Sequence[str], top: int = 5) -> list[list[Prediction]]:
        """For each text its best labels, best first; for a text without a word, none."""
        if top < 1:
            raise UserError(f"top is at least 1, not {top}.")
        ids_QK, scores_QK = self.rank(texts, top)
        return [
            [self._prediction(label, score) for label, score in zip(ids, scores, strict=True) if label >= 0]
            if text and not text.isspace()
            else []
            for text, ids, scores in zip(texts, ids_QK.tolist(), scores_QK.tolist(), strict=True)
        ]

    def _prediction(self, label: int, score: float) -> Prediction:
        return Prediction(self.labels.names[label], self.labels.uids[label], label, score)

    def save(self, path: str | Path) -> None:
        """Writes the model directory; an old one at that place is replaced only when the new one is complete."""
        from .storage import save_model

        save_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> PrimeModel:
        """Reads a directory that `save` or `primexmc train` wrote."""
        from .storage import load_model

        return load_model(Path(path), pick_device(device))
