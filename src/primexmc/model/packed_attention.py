"""Attention within texts that lie end to end in one row of tokens, three ways; all give the same.

- by length: texts of equal length make a rectangle; any device, any precision. The texts must be sorted by length.
- short: our own kernel for texts of at most 128 tokens (short_attention.py); CUDA, half precision.
- flash: torch's variable-length flash attention; CUDA, half precision. Its tiles are 64 to 128 tokens of one text, so
  texts of a dozen tokens leave it mostly idle.
Shapes: T tokens in all, H heads of d dimensions, B texts, n texts of length l.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from .token_batch import to_device

Attention = Callable[[Tensor, Tensor, Tensor, float], Tensor]  # q_THd, k_THd, v_THd and the chance of dropout
IntArray = npt.NDArray[np.int64]
HALF = (torch.bfloat16, torch.float16)
TOLERANCE = 0.02  # of a kernel against fp32, relative: some roundings of bf16


def choose_attention(
    lengths: IntArray, head_dim: int, device: torch.device, dtype: torch.dtype
) -> tuple[Attention, IntArray | None]:
    """The fastest way for these texts, and the order that it wants them in (None: as they are)."""
    longest = int(lengths.max(initial=0))
    if longest > 0 and device.type == "cuda" and dtype in HALF:
        for name in ("short", "flash"):
            if _fits(name, longest, head_dim) and _works(name, head_dim, device, dtype):
                return KERNELS[name](lengths, device), None
    order = np.argsort(lengths, kind="stable")
    return by_length(lengths[order]), order


def by_length(lengths: IntArray) -> Attention:
    """Ascending lengths: the texts of one length are one rectangle, without a mask."""
    distinct, counts = np.unique(lengths[lengths > 0], return_counts=True)
    sizes = (distinct * counts).tolist()
    shapes = list(zip(counts.tolist(), distinct.tolist(), strict=True))

    def attend(q_THd: Tensor, k_THd: Tensor, v_THd: Tensor, dropout: float) -> Tensor:
        parts = zip(*(torch.split(x, sizes) for x in (q_THd, k_THd, v_THd)), shapes, strict=True)
        attended = [_rectangle(q, k, v, shape, dropout) for q, k, v, shape in parts]
        return torch.cat(attended) if attended else q_THd

    return attend


def _rectangle(q: Tensor, k: Tensor, v: Tensor, shape: tuple[int, int], dropout: float) -> Tensor:
    q_nHld, k_nHld, v_nHld = (x.view(*shape, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    attended_nHld = functional.scaled_dot_product_attention(q_nHld, k_nHld, v_nHld, dropout_p=dropout)
    return attended_nHld.transpose(1, 2).reshape(q.shape)


def flash(lengths: IntArray, device: torch.device) -> Attention:
    """What `torch.nn.attention.varlen` calls; called here directly because that leaves no room for dropout."""
    longest = int(lengths.max())
    start_B1 = to_device(torch.from_numpy(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)), device)

    def attend(q_THd: Tensor, k_THd: Tensor, v_THd: Tensor, dropout: float) -> Tensor:
        arguments = (q_THd, k_THd, v_THd, start_B1, start_B1, longest, longest, dropout, False, False)
        attended: Tensor = torch.ops.aten._flash_attention_forward(*arguments)[0]
        return attended

    return attend


def short(lengths: IntArray, device: torch.device) -> Attention:
    """Our own kernel."""
    from .short_attention import Windows, short_attention

    windows = Windows.of(lengths, device)
    return lambda q_THd, k_THd, v_THd, dropout: short_attention(q_THd, k_THd, v_THd, windows, dropout)


KERNELS: dict[str, Callable[[IntArray, torch.device], Attention]] = {"short": short, "flash": flash}


def _fits(name: str, longest: int, head_dim: int) -> bool:
    if name == "short":
        return longest <= 128 and head_dim in (16, 32, 64, 128)
    return head_dim % 8 == 0 and head_dim <= 256


@cache
def _works(name: str, head_dim: int, device: torch.device, dtype: torch.dtype) -> bool:
    """Tried once in a process on a few texts, values and gradients against fp32: what fails or errs is not used."""
    try:
        error = trial(name, head_dim, device, dtype)
    except Exception as reason:  # whatever a compiler or driver makes of it: there is another way
        warnings.warn(f"attention kernel {name!r} cannot be used here ({reason!r:.300}); another one is", stacklevel=2)
        return False
    if not error < TOLERANCE:
        warnings.warn(f"attention kernel {name!r} errs by {error:.3g} here; another one is used", stacklevel=2)
        return False
    return True


def trial(name: str, head_dim: int, device: torch.device, dtype: torch.dtype) -> float:
    """The largest relative error of values and of gradients by q, k and v."""
    lengths = np.concatenate((np.arange(1, 40), [64, 1, 7]))
    order = np.argsort(lengths, kind="stable")
    generator = torch.Generator().manual_seed(0)
    q, k, v, up = (torch.randn(int(lengths.sum()), 4, head_dim, generator=generator).to(dtype) for _ in range(4))
    with torch.enable_grad():
        exact = _with_gradients(by_length(lengths[order]), [_sorted(x.float(), lengths, order) for x in (q, k, v, up)])
        found = _with_gradients(KERNELS[name](lengths, device), [x.to(device) for x in (q, k, v, up)])
    found = [_sorted(x.detach().float().cpu(), lengths, order) for x in found]
    return max(float((x - y).norm() / y.norm()) for x, y in zip(found, exact, strict=True))


def _with_gradients(attention: Attention, inputs: list[Tensor]) -> list[Tensor]:
    q, k, v = (x.detach().requires_grad_() for x in inputs[:3])
    attended = attention(q, k, v, 0.0)
    return [attended.detach(), *torch.autograd.grad(attended, (q, k, v), inputs[3])]


def _sorted(x_THd: Tensor, lengths: IntArray, order: IntArray) -> Tensor:
    """The same texts in another order."""
    texts = torch.split(x_THd, lengths.tolist())
    return torch.cat([texts[text] for text in order])
