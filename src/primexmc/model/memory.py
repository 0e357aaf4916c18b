"""What a model remembers of its training queries: their embeddings, their labels and their texts.

Shapes: N training queries, L labels, D dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from ..data.texts import Texts


@dataclass(frozen=True)
class Memory:
    """Row i of `positives` and `texts[i]` belong to row i of `h_ND`."""

    h_ND: Tensor  # of length 1, half precision, on the CPU
    positives: csr_matrix  # N x L
    texts: Texts

    def __len__(self) -> int:
        return len(self.h_ND)

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the number of labels, which the model knows."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "label_starts": self.positives.indptr.astype(np.int64),
            "label_ids": self.positives.indices.astype(np.int32),
            "text_bytes": self.texts.blob,
            "text_starts": self.texts.offsets,
        }
        return {"h": self.h_ND} | {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_labels: int) -> Memory:
        """The inverse; a ValueError or KeyError where the tensors do not belong together."""
        h_ND, starts, ids = tensors["h"], tensors["label_starts"].numpy(), tensors["label_ids"].numpy()
        texts = Texts(tensors["text_bytes"].numpy(), tensors["text_starts"].numpy())
        ones = np.ones(len(ids), dtype=np.float32)
        positives = csr_matrix((ones, ids, starts), shape=(len(starts) - 1, num_labels))
        positives.check_format()
        if not len(h_ND) == len(texts) == positives.shape[0]:
            raise ValueError(f"{len(h_ND)} embeddings, {len(texts)} texts, {positives.shape[0]} rows of labels")
        return cls(h_ND, positives, texts)
