"""Attention masks that need no look at their values, so that the CPU does not wait for the GPU.

Given a mask of B x S, Hugging Face's libraries ask whether anything is masked at all: a wait in every group of texts.
A mask of B x 1 x 1 x S is finished, and passed on as it is, by the models that make theirs with
`create_bidirectional_mask`. Others, and those that mix in local attention, get B x S.
Shapes: B texts, S positions of a padded rectangle.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import torch
from torch import Tensor

Kind = Literal["plain", "sdpa", "eager"]


def mask_kind(transformer: Any) -> Kind:
    """What this model takes."""
    module = sys.modules[type(transformer).__module__]
    local = hasattr(module, "create_bidirectional_sliding_window_mask")
    attention = getattr(transformer.config, "_attn_implementation", None)
    if hasattr(module, "create_bidirectional_mask") and not local and attention in ("sdpa", "eager"):
        return attention  # type: ignore[no-any-return]
    return "plain"


def attention_mask(mask_BS: Tensor, kind: Kind) -> Tensor:
    """The mask in the form of that kind. A text without tokens attends to its padding: nothing becomes NaN."""
    mask_BS = mask_BS.clone()
    mask_BS[:, 0] = True
    if kind == "plain":
        return mask_BS.long()
    mask_B11S = mask_BS[:, None, None, :]
    if kind == "sdpa":
        return mask_B11S
    return torch.zeros_like(mask_B11S, dtype=torch.float32).masked_fill(~mask_B11S, torch.finfo(torch.float32).min)
