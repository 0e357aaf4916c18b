"""RaggedTokens: every text's token ids, cut once, one after the other in one array, kept on disk for the next run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ..errors import UserError
from .ragged import ragged_take
from .texts import Texts
from .token_cache import TokenCache

_CHUNK = 8192


@dataclass(frozen=True)
class RaggedTokens:
    """Text i has the ids `ids_T[offsets[i]:offsets[i + 1]]`; an empty text may have none."""

    ids_T: NDArray[Any]  # uint16 where the vocabulary fits, else int32; often a memory map
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens per text."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(ids, offsets) of these texts, in this order: row i of the answer is `ids[offsets[i]:offsets[i + 1]]`."""
        ids, offsets = ragged_take(self.ids_T, self.offsets, rows)
        return ids.astype(np.int64), offsets


def tokenise(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    max_tokens: int,
    *,
    prefix: str = "",
    add_special_tokens: bool = True,
    cache_dir: str | Path | None = None,
) -> RaggedTokens:
    """The texts' ids, at most `max_tokens` each with special tokens; a second call with the same input reads the cache.

    `cache_dir` defaults to `$PRIMEXMC_CACHE` or `~/.cache/primexmc`.
    """
    texts = Texts.of(texts)
    cutter = cutting(tokenizer, max_tokens, add_special_tokens=add_special_tokens)
    dtype = np.dtype("<u2" if cutter.get_vocab_size() <= 1 << 16 else "<i4")
    recipe = [cutter.to_str(), prefix, str(add_special_tokens)]
    chunks = partial(_chunks, texts, cutter, prefix, add_special_tokens, dtype)
    return RaggedTokens(*TokenCache(cache_dir).get(texts, recipe, dtype, chunks))


def tokenise_once(texts: Sequence[str], cutter: Tokenizer, *, prefix: str, add_special_tokens: bool) -> RaggedTokens:
    """The ids of texts that will not be seen again, by a tokenizer that `cutting` made: no cache."""
    rows = [
        encoding.ids
        for encoding in cutter.encode_batch_fast(
            [prefix + text for text in texts], add_special_tokens=add_special_tokens
        )
    ]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return RaggedTokens(np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(offsets[-1])), offsets)


def cutting(tokenizer: Tokenizer, max_tokens: int, *, add_special_tokens: bool) -> Tokenizer:
    """The caller's tokenizer, left alone, as one that cuts and does not pad."""
    num_special = tokenizer.num_special_tokens_to_add(False) if add_special_tokens else 0
    if max_tokens <= num_special:
        raise UserError(f"{max_tokens} tokens a text leave no room beside {num_special} special tokens; allow more.")
    cutter: Tokenizer = Tokenizer.from_str(tokenizer.to_str())
    cutter.no_padding()
    cutter.enable_truncation(max_tokens)
    return cutter


def _chunks(
    texts: Texts, cutter: Tokenizer, prefix: str, add_special_tokens: bool, dtype: np.dtype[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """(ids, lengths) of thousands of texts at a time; the library encodes a chunk in parallel threads."""
    stream = iter(texts)
    while chunk := list(itertools.islice(stream, _CHUNK)):
        if prefix:
            chunk = [prefix + text for text in chunk]
        rows = [encoding.ids for encoding in cutter.encode_batch_fast(chunk, add_special_tokens=add_special_tokens)]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        yield np.fromiter(itertools.chain.from_iterable(rows), dtype, int(lengths.sum())), lengths
