"""The text encoder: the small interface that queries and labels share, and where an encoder comes from.

Shapes: B texts, T tokens in all, D dimensions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from tokenizers import Tokenizer
from torch import Tensor, nn

from ..config import EncoderSettings, Settings
from .token_batch import TokenBatch


class TextEncoder(nn.Module, ABC):
    """Tokens in, one un-normalised vector a text out. This is the whole surface that training and prediction use."""

    dim: int
    tokenizer: Tokenizer
    add_special_tokens: bool
    max_tokens: int | None = None  # longer texts cannot be read; None: any length

    @abstractmethod
    def forward(self, batch: TokenBatch) -> Tensor:
        """h_BD in float32; a text without tokens gets a finite vector."""

    @abstractmethod
    def save(self, directory: Path, settings: Settings) -> None:
        """Writes all that `load_encoder` needs to make the same encoder again; `settings` say how it is to be used."""


def load_encoder(settings: EncoderSettings, directory: Path | None = None) -> TextEncoder:
    """The encoder that the settings name; `directory` holds a trained one to be used in its place."""
    if settings.name == "static":
        from .static import StaticEncoder

        return StaticEncoder.from_directory(directory, dropout=settings.dropout)
    from .transformer import TransformerEncoder

    source = str(directory) if directory is not None else settings.name
    return TransformerEncoder.from_source(source, settings.pooling, settings.dropout, settings.packed)
