"""What train and test share, and what texts give away: duplicates, reverse pairs, texts that name their label."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .corpus import Corpus, Labels, Split
from .texts import Texts, text_hashes

_SAMPLE = 10_000
_NO_WORD = re.compile(r"\W+")


def num_duplicates(texts: Sequence[str]) -> int:
    """How many texts, empty ones aside, stood earlier already."""
    hashes = text_hashes(texts)[Texts.of(texts).num_bytes > 0]
    return len(hashes) - len(np.unique(hashes))


def num_sharing(texts: Sequence[str]) -> int:
    """How many texts, empty ones aside, another one equals: three alike are three."""
    hashes = text_hashes(texts)[Texts.of(texts).num_bytes > 0]
    count = np.unique(hashes, return_counts=True)[1]
    return int(count[count > 1].sum())


def num_seen(texts: Sequence[str], earlier: Sequence[str]) -> int:
    """How many texts, empty ones aside, stand among the earlier ones too."""
    filled = Texts.of(texts).num_bytes > 0
    return int(np.isin(text_hashes(texts)[filled], text_hashes(earlier)).sum())


def share_naming_a_label(split: Split, labels: Labels) -> float:
    """Share of the labelled queries whose text holds the name of one of their labels, as whole words (a sample)."""
    labelled = np.flatnonzero(np.diff(split.positives.indptr))
    rows = labelled[:: max(1, len(labelled) // _SAMPLE)]
    texts = Texts.of(split.texts).take(rows)
    hits = sum(
        any(_words(labels.names[label]) in words for label in split.positives[row].indices)
        for row, words in zip(rows, map(_words, texts), strict=True)
    )
    return hits / max(1, len(rows))


def share_of_reverse_pairs(corpus: Corpus) -> float | None:
    """Share of the test pairs (q, l) for which train has l as a query and q as its label; None where it cannot be.

    A query and a label are the same thing when they have one uid or, where more match so, one text.
    """
    train, test = corpus.train, corpus.test
    if train is None or test is None or not test.positives.nnz:
        return None
    matches = [
        (_same_label(train.uids, corpus.labels.uids), _same_label(test.uids, corpus.labels.uids)),
        (_same_label(train.texts, corpus.labels.texts), _same_label(test.texts, corpus.labels.texts)),
    ]
    if _are_row_numbers(train.uids):  # then equal uids mean nothing
        del matches[0]
    of_train, of_test = max(matches, key=lambda pair: (pair[0] >= 0).sum())
    if not ((of_train >= 0).any() and (of_test >= 0).any()):
        return None
    trained, tested = _pairs(train, of_train), _pairs(test, of_test)[:, ::-1]
    return float(
        np.isin(_codes(tested, len(corpus.labels)), _codes(trained, len(corpus.labels))).sum() / test.positives.nnz
    )


def _words(text: str) -> str:
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "


def _same_label(queries: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    """For each query the label that is the same, or -1."""
    hashes_L, hashes_Q = text_hashes(labels), text_hashes(queries)
    order_L = np.argsort(hashes_L, kind="stable")
    places_Q = np.minimum(np.searchsorted(hashes_L, hashes_Q, sorter=order_L), len(labels) - 1)
    same_Q = order_L[places_Q]
    return np.where((hashes_L[same_Q] == hashes_Q) & (Texts.of(queries).num_bytes > 0), same_Q, -1)


def _are_row_numbers(uids: Sequence[str]) -> bool:
    return all(uid == str(row) for row, uid in enumerate(uids))


def _pairs(split: Split, same_Q: NDArray[np.int64]) -> NDArray[np.int64]:
    """(label that the query is, label that it has) of all pairs whose query is a label."""
    queries = np.repeat(same_Q, np.diff(split.positives.indptr))
    return np.stack([queries, split.positives.indices.astype(np.int64)], axis=1)[queries >= 0]


def _codes(pairs: NDArray[np.int64], num_labels: int) -> NDArray[np.int64]:
    codes: NDArray[np.int64] = pairs[:, 0] * num_labels + pairs[:, 1]
    return codes
