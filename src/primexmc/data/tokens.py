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

from .cutter import Cutter
from .ragged import ragged_take
from .texts import Texts
from .token_cache import TokenCache

_CHUNK = 2048


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
    compact = Texts.of(texts)
    cutter = Cutter(tokenizer, max_tokens, add_special_tokens)
    dtype = np.dtype("<u2" if cutter.largest_id < 1 << 16 else "<i4")
    recipe = [cutter.recipe, prefix, str(add_special_tokens)]
    return RaggedTokens(
        *TokenCache(cache_dir).get(compact, recipe, dtype, partial(_chunks, compact, cutter, prefix, dtype))
    )


def _chunks(
    texts: Texts, cutter: Cutter, prefix: str, dtype: np.dtype[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """(ids, lengths) of thousands of texts at a time; the library encodes a chunk in parallel threads."""
    stream = iter(texts)
    while chunk := list(itertools.islice(stream, _CHUNK)):
        rows = cutter.encode([prefix + text for text in chunk] if prefix else chunk)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        yield np.fromiter(itertools.chain.from_iterable(rows), dtype, int(lengths.sum())), lengths
