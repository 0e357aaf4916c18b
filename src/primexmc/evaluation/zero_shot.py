"""The encoder as it comes, without training: the labels whose texts lie nearest to the query."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from ..config import Settings
from ..data.corpus import Labels, Split
from ..model.encode import TextReader, pick_device, wants_bf16
from ..model.encoder import load_encoder
from ..retrieval.exact import ExactIndex
from .hits import IntArray


def zero_shot(settings: Settings, labels: Labels, queries: Split) -> IntArray:
    """Ranked label ids (queries x settings.search.top, -1 = none); texts are cut and prefixed as in training."""
    device = pick_device(settings.training.device)
    encoder = load_encoder(settings.encoder).to(device)
    bf16 = wants_bf16(settings.training.precision, device)

    def encode(texts: Sequence[str], max_tokens: int, prefix: str) -> torch.Tensor:
        return functional.normalize(TextReader(encoder, max_tokens, prefix).encode(texts, device, bf16=bf16), dim=1)

    index = ExactIndex(encode(labels.texts, settings.data.label_tokens, settings.encoder.label_prefix))
    h_QD = encode(queries.texts, settings.data.query_tokens, settings.encoder.query_prefix)
    ids_QK, _ = index.search(h_QD, settings.search.top, queries.filtered)
    return ids_QK
