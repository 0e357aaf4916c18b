"""Many texts with gradient and little memory: the encoder runs part by part, and again for the gradient.

Known as gradient caching: what the encoder would keep for the backward pass is thrown away and computed anew, one part
at a time, with the same random numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .encoder import TextEncoder
from .token_batch import IntArray, TokenBatch


def encode_in_parts(encoder: TextEncoder, batch: TokenBatch, texts_at_once: int) -> Tensor:
    """h_BD as the encoder gives it; 0 texts at once means all of them, kept."""
    if texts_at_once == 0:
        h_BD: Tensor = encoder(batch)
        return h_BD

    def encode(ids_T: Tensor, offsets: IntArray) -> Tensor:
        return encode_in_parts(encoder, TokenBatch(ids_T, offsets), 0)

    parts = [
        checkpoint(encode, *_part(batch, start, texts_at_once), use_reentrant=False)
        for start in range(0, max(1, len(batch)), texts_at_once)
    ]
    return torch.cat(parts)


def _part(batch: TokenBatch, start: int, size: int) -> tuple[Tensor, IntArray]:
    offsets = batch.offsets[start : start + size + 1]
    return batch.ids_T[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0]
