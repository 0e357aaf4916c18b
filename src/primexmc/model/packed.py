"""A BERT-like encoder over texts laid end to end: no padding token is computed.

Everything but attention treats each token by itself, so it runs on one flat row of tokens. Under autocast all of it is
computed in bf16, with the weights cast once a pass; sums, norms and softmax are inside their kernels in fp32.
Shapes: B texts, T tokens in all, H heads of d dimensions, D = H d dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import Embeddings, Layer, Parts
from .packed_attention import Attention, choose_attention
from .token_batch import TokenBatch, to_device


def packed_forward(parts: Parts, batch: TokenBatch, training: bool) -> Row:
    """The last layer's vectors of every token, in fp32."""
    device = batch.device
    dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
    head_dim = parts.layers[0].query.out_features // parts.layers[0].heads
    attention, order = choose_attention(batch.lengths, head_dim, device, dtype)
    row = Row.of(batch, order)
    with torch.autocast(device.type, enabled=False):
        x_TD = _embed(parts.embeddings, row, dtype, training)
        for layer in parts.layers:
            x_TD = _layer(layer, x_TD, attention, training)
    return row.with_hidden(x_TD.float())


@dataclass(frozen=True)
class Row:
    """The texts of a batch laid end to end, in an order of their own. `hidden_TD` is what became of the tokens."""

    ids_T: Tensor
    position_T: Tensor
    lengths: np.ndarray  # in the order of the row
    order: np.ndarray | None  # row place -> text; None: as they came
    hidden_TD: Tensor | None = None

    @classmethod
    def of(cls, batch: TokenBatch, order: np.ndarray | None) -> Row:
        lengths, ids_T = batch.lengths, batch.ids_T
        if order is not None:
            lengths = lengths[order]
        ends = np.cumsum(lengths)
        position_T = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        if order is not None:
            source_T = position_T + np.repeat(batch.offsets[:-1][order], lengths)
            ids_T = ids_T[to_device(torch.from_numpy(source_T), batch.device)]
        return cls(ids_T, to_device(torch.from_numpy(position_T), batch.device), lengths, order)

    def with_hidden(self, hidden_TD: Tensor) -> Row:
        return Row(self.ids_T, self.position_T, self.lengths, self.order, hidden_TD)

    def mean_BD(self) -> Tensor:
        """The mean of each text's vectors, 0 for a text without tokens; texts in the batch's order."""
        assert self.hidden_TD is not None
        device = self.hidden_TD.device
        if len(self.hidden_TD) == 0:
            return self.hidden_TD.new_zeros(len(self.lengths), self.hidden_TD.shape[1])
        offsets = np.concatenate(([0], np.cumsum(self.lengths)))
        offset_B1 = to_device(torch.from_numpy(offsets), device)
        sum_BD = torch.segment_reduce(self.hidden_TD, "sum", offsets=offset_B1, initial=0.0, unsafe=True)
        return self._in_order(sum_BD / offset_B1.diff().clamp(min=1)[:, None])

    def first_BD(self) -> Tensor:
        """Each text's first vector, 0 for a text without tokens."""
        assert self.hidden_TD is not None
        device = self.hidden_TD.device
        starts = np.cumsum(self.lengths) - self.lengths
        if len(self.hidden_TD) == 0:
            return self.hidden_TD.new_zeros(len(self.lengths), self.hidden_TD.shape[1])
        first = np.minimum(starts, len(self.hidden_TD) - 1)
        exists_B1 = to_device(torch.from_numpy(self.lengths > 0), device)[:, None]
        return self._in_order(self.hidden_TD[to_device(torch.from_numpy(first), device)] * exists_B1)

    def _in_order(self, h_BD: Tensor) -> Tensor:
        if self.order is None:
            return h_BD
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(self.order))
        return h_BD[to_device(torch.from_numpy(place), h_BD.device)]


def _embed(embeddings: Embeddings, row: Row, dtype: torch.dtype, training: bool) -> Tensor:
    x_TD = embeddings.tokens(row.ids_T) + embeddings.positions(row.position_T + embeddings.first_position)
    if embeddings.types is not None:
        x_TD = x_TD + embeddings.types.weight[0]
    x_TD = _norm(embeddings.norm, x_TD.to(dtype))
    return functional.dropout(x_TD, embeddings.dropout.p, training)


def _layer(layer: Layer, x_TD: Tensor, attention: Attention, training: bool) -> Tensor:
    q_THd, k_THd, v_THd = (
        _linear(part, x_TD).view(len(x_TD), layer.heads, part.out_features // layer.heads)
        for part in (layer.query, layer.key, layer.value)
    )
    attended_THd = attention(q_THd, k_THd, v_THd, layer.attention_dropout if training else 0.0)
    out_TD = functional.dropout(_linear(layer.out, attended_THd.flatten(1)), layer.out_dropout, training)
    x_TD = _norm(layer.attention_norm, out_TD + x_TD)
    wide = layer.activation(_linear(layer.widen, x_TD))
    out_TD = functional.dropout(_linear(layer.narrow, wide), layer.narrow_dropout, training)
    return _norm(layer.narrow_norm, out_TD + x_TD)


def _linear(linear: nn.Module, x: Tensor) -> Tensor:
    """Others than torch's own see to their numbers themselves."""
    if not isinstance(linear, nn.Linear):
        product: Tensor = linear(x)
        return product
    return functional.linear(x, linear.weight.to(x.dtype), linear.bias.to(x.dtype))


def _norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return functional.layer_norm(x, norm.normalized_shape, norm.weight.to(x.dtype), norm.bias.to(x.dtype), norm.eps)
