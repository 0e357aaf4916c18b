"""Attention within short texts that lie end to end, as one Triton kernel forward and one backward.

Consecutive whole texts share a window of 64 or 128 rows; a program takes one head of one window and masks what belongs
to different texts. A window's scores stay in registers, so nothing is kept for the backward pass but q, k and v.
Per layer the kernels read and write 4 and 7 times T x D numbers, which is the least that is possible.
Shapes: T tokens in all, H heads of d dimensions, W rows of a window.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl
from torch import Tensor

from .token_batch import to_device

LONGEST = 128  # tokens of a text
WARPS = {64: 4, 128: 8}  # of a program, by rows of its window


@dataclass(frozen=True)
class Windows:
    """Where the windows begin (and the last one ends), and to which text each row belongs."""

    start_N1: Tensor  # int32
    text_T: Tensor  # int32
    rows: int

    @classmethod
    def of(cls, lengths: npt.NDArray[np.int64], device: torch.device) -> Windows:
        """As many whole texts to a window as it holds, in their order."""
        rows = 64 if lengths.max(initial=0) <= 64 else LONGEST
        ends = np.cumsum(lengths)
        text_T = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        starts, end_of_text = [0], ends.tolist()
        while starts[-1] < len(text_T):
            starts.append(end_of_text[bisect_right(end_of_text, starts[-1] + rows) - 1])
        start_N1 = torch.tensor(starts, dtype=torch.int32)
        return cls(to_device(start_N1, device), to_device(torch.from_numpy(text_T), device), rows)

    def __len__(self) -> int:
        return len(self.start_N1) - 1


def short_attention(q_THd: Tensor, k_THd: Tensor, v_THd: Tensor, windows: Windows, dropout: float = 0.0) -> Tensor:
    """softmax(q k' / sqrt(d)) v within each text; `dropout` is the chance that a weight is left out."""
    seed = int(torch.randint(2**31 - 1, ())) if dropout > 0 else 0
    attended_THd: Tensor = _ShortAttention.apply(q_THd, k_THd, v_THd, windows, dropout, seed)  # type: ignore[no-untyped-call]
    return attended_THd


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, windows: Windows, dropout: float, seed: int) -> Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        ctx.save_for_backward(q, k, v)
        ctx.rest = (windows, dropout, seed)
        out = torch.empty_like(q)
        _launch(_forward, (q, k, v, out), *ctx.rest)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        d_q, d_k, d_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        _launch(_backward, (q, k, v, gradients[0].contiguous(), d_q, d_k, d_v), *ctx.rest)
        return d_q, d_k, d_v, None, None, None


def _launch(kernel: Any, tensors: tuple[Tensor, ...], windows: Windows, dropout: float, seed: int) -> None:
    _, heads, dim = tensors[0].shape
    kernel[(len(windows), heads)](
        *tensors, windows.start_N1, windows.text_T, dim**-0.5, dropout, seed,
        HEADS=heads, DIM=dim, ROWS=windows.rows, DROPS=dropout > 0, num_warps=WARPS[windows.rows],
    )  # fmt: skip


@triton.jit(do_not_specialize=["seed"])
def _forward(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, out: tl.tensor,
    starts: tl.tensor, texts: tl.tensor, scale: tl.tensor, dropout: tl.tensor, seed: tl.tensor,
    HEADS: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, DROPS: tl.constexpr,
) -> None:  # fmt: skip
    place_Wd, inside_Wd, text_W = _window(starts, texts, HEADS, DIM, ROWS)
    v_Wd = tl.load(v + place_Wd, mask=inside_Wd, other=0.0)
    q_Wd = tl.load(q + place_Wd, mask=inside_Wd, other=0.0)
    k_Wd = tl.load(k + place_Wd, mask=inside_Wd, other=0.0)
    p_WW = _weights(q_Wd, k_Wd, text_W, scale)
    if DROPS:
        p_WW = p_WW * _kept(starts, dropout, seed, HEADS, ROWS)
    out_Wd = tl.dot(p_WW.to(v_Wd.dtype), v_Wd, input_precision="ieee")
    tl.store(out + place_Wd, out_Wd.to(v_Wd.dtype), mask=inside_Wd)


@triton.jit(do_not_specialize=["seed"])
def _backward(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, d_out: tl.tensor, d_q: tl.tensor, d_k: tl.tensor, d_v: tl.tensor,
    starts: tl.tensor, texts: tl.tensor, scale: tl.tensor, dropout: tl.tensor, seed: tl.tensor,
    HEADS: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, DROPS: tl.constexpr,
) -> None:  # fmt: skip
    place_Wd, inside_Wd, text_W = _window(starts, texts, HEADS, DIM, ROWS)
    q_Wd = tl.load(q + place_Wd, mask=inside_Wd, other=0.0)
    k_Wd = tl.load(k + place_Wd, mask=inside_Wd, other=0.0)
    v_Wd = tl.load(v + place_Wd, mask=inside_Wd, other=0.0)
    d_out_Wd = tl.load(d_out + place_Wd, mask=inside_Wd, other=0.0)
    p_WW = _weights(q_Wd, k_Wd, text_W, scale)
    d_p_WW = tl.dot(d_out_Wd, tl.trans(v_Wd), input_precision="ieee")
    dropped_WW = p_WW
    if DROPS:
        kept_WW = _kept(starts, dropout, seed, HEADS, ROWS)
        d_p_WW = d_p_WW * kept_WW
        dropped_WW = p_WW * kept_WW
    d_v_Wd = tl.dot(tl.trans(dropped_WW.to(v_Wd.dtype)), d_out_Wd, input_precision="ieee")
    tl.store(d_v + place_Wd, d_v_Wd.to(v_Wd.dtype), mask=inside_Wd)
    d_s_WW = p_WW * (d_p_WW - tl.sum(p_WW * d_p_WW, 1)[:, None]) * scale
    d_s_WW = d_s_WW.to(q_Wd.dtype)
    d_q_Wd = tl.dot(d_s_WW, k_Wd, input_precision="ieee")
    tl.store(d_q + place_Wd, d_q_Wd.to(q_Wd.dtype), mask=inside_Wd)
    d_k_Wd = tl.dot(tl.trans(d_s_WW), q_Wd, input_precision="ieee")
    tl.store(d_k + place_Wd, d_k_Wd.to(q_Wd.dtype), mask=inside_Wd)


@triton.jit
def _window(
    starts: tl.tensor, texts: tl.tensor, HEADS: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr
) -> tl.tuple:
    """Where this program's numbers lie, which of them exist, and the rows' texts (-1 behind the last one)."""
    row_W = tl.load(starts + tl.program_id(0)) + tl.arange(0, ROWS)
    inside_W = row_W < tl.load(starts + tl.program_id(0) + 1)
    text_W = tl.load(texts + row_W, mask=inside_W, other=-1)
    vector_W = row_W.to(tl.int64) * HEADS + tl.program_id(1)
    return vector_W[:, None] * DIM + tl.arange(0, DIM)[None, :], inside_W[:, None] & (tl.arange(0, DIM) < DIM), text_W


@triton.jit
def _weights(q_Wd: tl.tensor, k_Wd: tl.tensor, text_W: tl.tensor, scale: tl.tensor) -> tl.tensor:
    s_WW = tl.dot(q_Wd, tl.trans(k_Wd), input_precision="ieee") * scale
    s_WW = tl.where(text_W[:, None] == text_W[None, :], s_WW, float("-inf"))
    e_WW = tl.exp(s_WW - tl.max(s_WW, 1)[:, None])
    return e_WW / tl.sum(e_WW, 1)[:, None]


@triton.jit
def _kept(starts: tl.tensor, dropout: tl.tensor, seed: tl.tensor, HEADS: tl.constexpr, ROWS: tl.constexpr) -> tl.tensor:
    """1 / (1 - dropout) where a weight stays, 0 where not: a hash of the seed and the weight's own number."""
    row_W = tl.load(starts + tl.program_id(0)) + tl.arange(0, ROWS)
    number_WW = (row_W[:, None] * HEADS + tl.program_id(1)) * ROWS + tl.arange(0, ROWS)[None, :]
    x_WW = number_WW.to(tl.uint32) ^ seed.to(tl.uint32)
    x_WW = (x_WW ^ (x_WW >> 16)) * 0x7FEB352D
    x_WW = (x_WW ^ (x_WW >> 15)) * 0x846CA68B
    x_WW = x_WW ^ (x_WW >> 16)
    chance_WW = (x_WW >> 8).to(tl.float32) * (1.0 / (1 << 24))
    return tl.where(chance_WW >= dropout, 1.0 / (1.0 - dropout), 0.0)
