"""An encoder whose matrix products are made in 8-bit whole numbers: on a CPU a short text takes half the time.

Weights have one scale a row, tokens one scale each, found on the way; so a text's vector does not depend on which texts
it is encoded with. All else stays in fp32, the encoder itself untouched.
Shapes: T tokens in all, I inputs and O outputs of a product.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from typing_extensions import TypeIs

from ..config import Settings
from .encoder import TextEncoder
from .layers import Layer, Parts
from .packed import packed_forward
from .token_batch import TokenBatch
from .transformer import TransformerEncoder

LARGEST = 127
PRODUCTS = ("query", "key", "value", "out", "widen", "narrow")


class Int8Encoder(TextEncoder):
    """For prediction alone. It has its own rounded copy of the weights, as they were when it was made."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        assert encoder.parts is not None, "only encoders whose parts are known"
        self.dim, self.tokenizer, self.max_tokens = encoder.dim, encoder.tokenizer, encoder.max_tokens
        self.add_special_tokens, self.pooling = encoder.add_special_tokens, encoder.pooling
        layers = tuple(_rounded(layer) for layer in encoder.parts.layers)
        self.parts = Parts(encoder.parts.embeddings, layers)

    def forward(self, batch: TokenBatch) -> Tensor:
        row = packed_forward(self.parts, batch, training=False)
        return row.mean_BD() if self.pooling == "mean" else row.first_BD()

    def save(self, directory: Path, settings: Settings) -> None:
        raise NotImplementedError("what is saved is the encoder that this one was made from")


class Int8Linear(nn.Module):
    """x W + b, with W and x rounded."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight_OI = linear.weight.detach().float().cpu()
        self.out_features, self.bias_O = linear.out_features, linear.bias.detach().float().cpu()
        self.scale_O = (weight_OI.abs().amax(1) / LARGEST).clamp(min=1e-12)
        self.codes_IO = torch.round(weight_OI / self.scale_O[:, None]).to(torch.int8).T.contiguous()

    def forward(self, x_TI: Tensor) -> Tensor:
        scale_T1 = (x_TI.abs().amax(1, keepdim=True) / LARGEST).clamp(min=1e-12)
        codes_TI = torch.round(x_TI / scale_T1).to(torch.int8)
        sum_TO = torch._int_mm(codes_TI, self.codes_IO).float()
        return torch.addcmul(self.bias_O, sum_TO, scale_T1 * self.scale_O)


def can_be_int8(encoder: TextEncoder) -> TypeIs[TransformerEncoder]:
    """Whether its parts are known."""
    return isinstance(encoder, TransformerEncoder) and encoder.parts is not None


@functools.cache
@torch.inference_mode()
def is_quicker() -> bool:
    """Whether this machine multiplies short texts faster so: a millisecond's trial."""
    linear, x_TI = nn.Linear(384, 1536), torch.randn(24, 384)
    return _fastest(Int8Linear(linear), x_TI) < _fastest(linear, x_TI)


def _fastest(product: nn.Module, x_TI: Tensor) -> float:
    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        product(x_TI)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _rounded(layer: Layer) -> Layer:
    products = {name: Int8Linear(getattr(layer, name)) for name in PRODUCTS}
    return dataclasses.replace(layer, **products)  # type: ignore[arg-type]  # they are called like the others
