"""What a loss says of one relation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Terms(NamedTuple):
    """The loss of one relation, and how many of its pairs violate what it asks for. All scalars on the device."""

    loss: Tensor
    violators: Tensor
    pairs: Tensor


def as_terms(loss: Terms | Tensor) -> Terms:
    """A loss of one's own may be a scalar without the numbers for the log."""
    if isinstance(loss, Terms):
        return loss
    return Terms(loss, loss.new_zeros(()), loss.new_zeros(()))


def at_least_float32(x: Tensor) -> Tensor:
    """bf16 and fp16 are too coarse for differences of similarities; float64 stays."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
