"""Any Hugging Face encoder behind the text encoder's interface, with mean or CLS pooling.

BERT, RoBERTa, DistilBERT and their kind run packed (packed.py), all others on padded rectangles.
Shapes: B texts, S positions of a padded rectangle, D dimensions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..config import Settings
from .attention_mask import attention_mask, mask_kind
from .encoder import TextEncoder
from .hugging_face import quiet, read_hugging_face
from .layers import parts_of
from .packed import packed_forward
from .pooling import POOLINGS, pooling_of
from .sentence_transformers import write_sentence_transformers_files
from .tensor_file import writing_tensors
from .token_batch import TokenBatch, to_device

Packed = Literal["auto", "on", "off"]
# Not cuDNN's: it plans anew for every shape of a rectangle, and here nearly every batch brings new ones.
ATTENTION_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
# Enough tokens in a group to keep the device busy; more groups pad less.
TOKENS_PER_GROUP = {"cpu": 2048, "cuda": 16384}
MAX_GROUPS = {"cpu": 1024, "cuda": 8}


class TransformerEncoder(TextEncoder):
    """Runs the transformer on texts laid end to end; where it is of another kind, or `packed` is "off", on texts sorted
    by length, in groups, so that few padding tokens are computed."""

    add_special_tokens = True

    def __init__(self, transformer: Any, tokenizer: Any, pooling: str, packed: Packed = "auto") -> None:
        super().__init__()
        self.transformer = transformer
        self.fast_tokenizer = tokenizer
        self.tokenizer: Tokenizer = tokenizer.backend_tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.pooling, self.pool, self.mask_kind = pooling, pooling_of(pooling), mask_kind(transformer)
        self.dim = int(transformer.config.hidden_size)
        self.pad_id = int(tokenizer.pad_token_id or 0)
        self.max_tokens = _num_positions(transformer)
        # pooling of one's own is given rectangles
        self.parts = parts_of(transformer) if packed != "off" and pooling in POOLINGS else None

    def forward(self, batch: TokenBatch) -> Tensor:
        if self.parts is None:
            return self._padded(batch)
        row = packed_forward(self.parts, batch, self.training)
        return row.mean_BD() if self.pooling == "mean" else row.first_BD()

    def _padded(self, batch: TokenBatch) -> Tensor:
        kind = batch.device.type
        groups = list(batch.groups_by_length(TOKENS_PER_GROUP.get(kind, 16384), MAX_GROUPS.get(kind, 8)))
        if not groups:
            return torch.zeros(0, self.dim, device=batch.device)
        h_BD = torch.cat([self._pooled(*batch.padded(rows, self.pad_id)) for rows in groups])
        order = torch.cat([torch.from_numpy(rows) for rows in groups])
        return h_BD[to_device(torch.argsort(order), h_BD.device)]

    def _pooled(self, ids_BS: Tensor, mask_BS: Tensor) -> Tensor:
        with sdpa_kernel(ATTENTION_KERNELS):
            output = self.transformer(input_ids=ids_BS, attention_mask=attention_mask(mask_BS, self.mask_kind))
        hidden_BSD: Tensor = output.last_hidden_state.float()
        return self.pool(hidden_BSD, mask_BS)

    def save(self, directory: Path, settings: Settings) -> None:
        """A Hugging Face directory that sentence-transformers loads, too."""
        with quiet(), writing_tensors(directory):
            self.transformer.save_pretrained(directory)
            self.fast_tokenizer.save_pretrained(directory)
        if self.pooling in POOLINGS:
            write_sentence_transformers_files(directory, self.dim, self.pooling, settings)

    @classmethod
    def from_source(cls, source: str, pooling: str, dropout: float, packed: Packed = "auto") -> TransformerEncoder:
        """From a directory or a Hugging Face name; `dropout` below 0 keeps the encoder's own."""
        return cls(*read_hugging_face(source, dropout), pooling, packed)


def _num_positions(transformer: Any) -> int | None:
    """How many tokens have a learned position; RoBERTa and its kind count from behind the padding's."""
    positions = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    if not isinstance(positions, nn.Embedding):
        return None
    return positions.num_embeddings - (0 if positions.padding_idx is None else positions.padding_idx + 1)
