"""The parts of BERT-like encoders by the role they play, so that one forward pass can be written for all of them.

The modules are the encoder's own: nothing is copied, and training, saving and loading see no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Embeddings:
    """Token, position and type vectors are added; positions are counted from `first_position` (RoBERTa: not 0)."""

    tokens: nn.Embedding
    positions: nn.Embedding
    types: nn.Embedding | None
    norm: nn.LayerNorm
    dropout: nn.Dropout
    first_position: int


@dataclass(frozen=True)
class Layer:
    """One post-norm transformer layer."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int
    attention_dropout: float
    out: nn.Linear
    out_dropout: float
    attention_norm: nn.LayerNorm
    widen: nn.Linear
    activation: Callable[[Tensor], Tensor]
    narrow: nn.Linear
    narrow_dropout: float
    narrow_norm: nn.LayerNorm


@dataclass(frozen=True)
class Parts:
    """All of an encoder that counts."""

    embeddings: Embeddings
    layers: tuple[Layer, ...]


def parts_of(transformer: Any) -> Parts | None:
    """None where the encoder is of a kind that is not known here, or has something that is not done here."""
    config = transformer.config
    read = READERS.get(config.model_type)
    plain = getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
    if read is None or not plain or getattr(config, "is_decoder", False):
        return None
    try:
        return read(transformer)
    except AttributeError:  # a version of the library that names or builds them otherwise
        return None


def _bert(transformer: Any) -> Parts:
    embeddings = transformer.embeddings
    positions = embeddings.position_embeddings
    return Parts(
        Embeddings(
            tokens=embeddings.word_embeddings,
            positions=positions,
            types=embeddings.token_type_embeddings,
            norm=embeddings.LayerNorm,
            dropout=embeddings.dropout,
            first_position=0 if positions.padding_idx is None else positions.padding_idx + 1,
        ),
        tuple(_bert_layer(layer) for layer in transformer.encoder.layer),
    )


def _bert_layer(layer: Any) -> Layer:
    attention, out = layer.attention.self, layer.attention.output
    return Layer(
        query=attention.query,
        key=attention.key,
        value=attention.value,
        heads=attention.num_attention_heads,
        attention_dropout=attention.dropout.p,
        out=out.dense,
        out_dropout=out.dropout.p,
        attention_norm=out.LayerNorm,
        widen=layer.intermediate.dense,
        activation=layer.intermediate.intermediate_act_fn,
        narrow=layer.output.dense,
        narrow_dropout=layer.output.dropout.p,
        narrow_norm=layer.output.LayerNorm,
    )


def _distilbert(transformer: Any) -> Parts:
    embeddings = transformer.embeddings
    return Parts(
        Embeddings(
            tokens=embeddings.word_embeddings,
            positions=embeddings.position_embeddings,
            types=None,
            norm=embeddings.LayerNorm,
            dropout=embeddings.dropout,
            first_position=0,
        ),
        tuple(_distilbert_layer(layer) for layer in transformer.transformer.layer),
    )


def _distilbert_layer(layer: Any) -> Layer:
    attention, feed_forward = layer.attention, layer.ffn
    return Layer(
        query=attention.q_lin,
        key=attention.k_lin,
        value=attention.v_lin,
        heads=attention.n_heads,
        attention_dropout=attention.dropout.p,
        out=attention.out_lin,
        out_dropout=0.0,
        attention_norm=layer.sa_layer_norm,
        widen=feed_forward.lin1,
        activation=feed_forward.activation,
        narrow=feed_forward.lin2,
        narrow_dropout=feed_forward.dropout.p,
        narrow_norm=layer.output_layer_norm,
    )


READERS: dict[str, Callable[[Any], Parts]] = {
    "bert": _bert,
    "roberta": _bert,
    "xlm-roberta": _bert,
    "camembert": _bert,
    "distilbert": _distilbert,
}
