"""What the loop trains on: tokens of queries and labels, and the true pairs.

Shapes: N training queries, L labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ..config import Settings
from ..data.corpus import Corpus, Split
from ..data.propensity import inverse_propensity
from ..data.texts import Texts
from ..data.tokens import RaggedTokens, tokenise
from ..errors import UserError
from ..model.encoder import TextEncoder


@dataclass(frozen=True)
class TrainingData:
    """Only queries with text and with labels are in it: the others cannot be trained on."""

    query_texts: Texts
    query_tokens: RaggedTokens
    label_tokens: RaggedTokens
    positives: csr_matrix
    inverse_propensity_L: npt.NDArray[np.float64]
    filtered: csr_matrix | None = None  # pairs that are neither rewarded nor punished

    @property
    def num_queries(self) -> int:
        return len(self.query_tokens)

    @property
    def num_labels(self) -> int:
        return len(self.label_tokens)


def prepare(
    corpus: Corpus, split: Split, encoder: TextEncoder, settings: Settings, cache_dir: Path | None = None
) -> TrainingData:
    """Tokenises (or finds in the cache) and leaves out the queries that have no text or no label."""
    _check_lengths(encoder, settings)
    data = settings.data
    special = encoder.add_special_tokens
    query_tokens = tokenise(
        split.texts, encoder.tokenizer, data.query_tokens,
        prefix=settings.encoder.query_prefix, add_special_tokens=special, cache_dir=cache_dir,
    )  # fmt: skip
    label_tokens = tokenise(
        corpus.labels.texts, encoder.tokenizer, data.label_tokens,
        prefix=settings.encoder.label_prefix, add_special_tokens=special, cache_dir=cache_dir,
    )  # fmt: skip
    usable = usable_queries(split)
    if len(usable) == 0:
        raise UserError(f"{corpus.name}: none of {len(split)} training queries has both a text and a label.")
    counts_L = np.bincount(split.positives.indices, minlength=len(corpus.labels))
    weights_L = inverse_propensity(counts_L, len(split), data.propensity_a, data.propensity_b)
    texts = Texts.of(split.texts)
    return TrainingData(
        texts if len(usable) == len(texts) else texts.take(usable),
        _select(query_tokens, usable),
        label_tokens,
        split.positives[usable],
        weights_L,
        None if split.filtered is None or split.filtered.nnz == 0 else split.filtered[usable],
    )


def usable_queries(split: Split) -> npt.NDArray[np.int64]:
    """The rows that have a text and a label."""
    has_text = np.diff(Texts.of(split.texts).offsets) > 0
    return np.flatnonzero(has_text & (np.diff(split.positives.indptr) > 0))


def _check_lengths(encoder: TextEncoder, settings: Settings) -> None:
    for name, tokens in (("query_tokens", settings.data.query_tokens), ("label_tokens", settings.data.label_tokens)):
        if encoder.max_tokens is not None and tokens > encoder.max_tokens:
            raise UserError(
                f'data.{name} is {tokens}, but the encoder "{settings.encoder.name}" reads at most '
                f"{encoder.max_tokens} tokens; set data.{name}={encoder.max_tokens} or less."
            )


def _select(tokens: RaggedTokens, rows: npt.NDArray[np.int64]) -> RaggedTokens:
    """These rows; all of them, which is the usual case, stay on disk."""
    if len(rows) == len(tokens):
        return tokens
    ids, offsets = tokens.take(rows)
    return RaggedTokens(ids.astype(tokens.ids_T.dtype), offsets)
