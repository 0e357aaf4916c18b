"""Many texts through the encoder, in order, without gradients.

Shapes: N texts, D dimensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..data.cutter import Cutter
from ..data.texts import Texts
from ..data.tokens import RaggedTokens
from ..errors import UserError
from .encoder import TextEncoder
from .token_batch import TokenBatch

ROWS_PER_STEP = 4096


def encode_tokens(encoder: TextEncoder, tokens: RaggedTokens, device: torch.device, *, bf16: bool) -> Iterator[Tensor]:
    """Blocks of un-normalised float32 h_BD, in the order of the texts."""
    for start in range(0, len(tokens), ROWS_PER_STEP):
        rows = np.arange(start, min(start + ROWS_PER_STEP, len(tokens)))
        yield encode_batch(encoder, TokenBatch.from_arrays(*tokens.take(rows), device), bf16)


@torch.no_grad()
def encode_batch(encoder: TextEncoder, batch: TokenBatch, bf16: bool) -> Tensor:
    """Un-normalised float32 h_BD, without dropout; the encoder is left as it was found."""
    was_training = encoder.training
    encoder.eval()
    with autocast(batch.device, bf16):
        h_BD: Tensor = encoder(batch).float()
    encoder.train(was_training)
    return h_BD


class TextReader:
    """Tokenises and encodes texts that are not worth a place in the cache; the tokenizer is made ready once."""

    def __init__(self, encoder: TextEncoder, max_tokens: int, prefix: str) -> None:
        self.encoder, self.prefix = encoder, prefix
        self.cutter = Cutter(encoder.tokenizer, max_tokens, encoder.add_special_tokens)

    def encode(self, texts: Sequence[str], device: torch.device, *, bf16: bool) -> Tensor:
        """Un-normalised h_ND."""
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise UserError(f"texts[{row}] is {text!r}; expected a text.")
        rows = self.cutter.encode([self.prefix + text for text in Texts.of(texts)])
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(offsets[-1]))
        tokens = RaggedTokens(ids, offsets)
        blocks = list(encode_tokens(self.encoder, tokens, device, bf16=bf16))
        return torch.cat(blocks) if blocks else torch.zeros(0, self.encoder.dim, device=device)


def autocast(device: torch.device, bf16: bool) -> torch.autocast:
    """Matrix products in bf16 where that is wanted."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16)


@contextmanager
def quick_products(device: torch.device, bf16: bool) -> Iterator[None]:
    """fp32 products with 10 bits of each factor (TF32) on GPUs that train in bf16, which has 7; sums stay fp32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if bf16 and device.type == "cuda" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def pick_device(name: str) -> torch.device:
    """The device that the settings name; "auto" is the GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f'"{name}" is no device; expected "auto", "cpu", "cuda" or "cuda:1".') from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f'the device "{name}" is not there: {torch.cuda.device_count()} CUDA devices are seen; try "auto".'
        )
    return device


def wants_bf16(precision: str, device: torch.device) -> bool:
    return precision == "bf16" or (precision == "auto" and device.type == "cuda")


def as_float32(tensor: Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.float().cpu().numpy()
    return array
