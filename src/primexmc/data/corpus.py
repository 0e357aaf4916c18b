"""Corpus: texts, labels and who belongs to whom, however they lay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Split:
    """The queries of one part of the data: `texts[i]` has the labels of row i of `positives`."""

    texts: Sequence[str]
    positives: csr_matrix  # queries x labels, float32 relevance, sorted indices, no explicit zeros
    uids: Sequence[str]
    filtered: csr_matrix | None = None  # pairs that are neither rewarded nor punished

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Labels:
    """What is known of each label. `uids` are unique, `names` need not be; `texts` is what the encoder reads."""

    uids: Sequence[str]
    names: Sequence[str]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.uids)


@dataclass(frozen=True)
class Corpus:
    """Labels and up to three splits of queries."""

    name: str
    labels: Labels
    train: Split | None = None
    val: Split | None = None
    test: Split | None = None
