"""Labels held out of training, as if they came later; and the queries that would be given for them then.

Shapes: L labels.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..data.corpus import Corpus, Labels
from ..data.texts import Texts
from ..errors import UserError
from ..evaluation.hits import label_counts

IntArray = NDArray[np.int64]
ONE_IN = 10


@dataclass(frozen=True)
class HeldOut:
    """`known` is the corpus without the labels `held` and without the training queries that have no others."""

    corpus: Corpus
    known: Corpus
    held: IntArray
    seed: int

    @classmethod
    def of(cls, corpus: Corpus, seed: int) -> HeldOut:
        """One of every ten trained labels in the order of their frequency."""
        held = _one_in_ten(label_counts(corpus.split("train").positives), np.random.default_rng(seed))
        if len(held) == 0:
            raise UserError(f"{corpus.name}: fewer than {ONE_IN} labels have training queries; none can be held out.")
        return cls(corpus, _without(corpus, held), held, seed)

    @property
    def is_held_L(self) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(self.corpus.labels)), self.held)

    def uids_and_texts(self) -> tuple[list[str], list[str]]:
        """Of the held-out labels."""
        labels = self.corpus.labels
        return [labels.uids[row] for row in self.held.tolist()], [labels.texts[row] for row in self.held.tolist()]

    def examples(self, at_most: int) -> list[list[str]]:
        """For each held-out label so many of its training queries, or all where there are fewer; 1 is among 4."""
        train = self.corpus.split("train")
        texts, of_label = train.texts, train.positives[:, self.held].tocsc()
        rng = np.random.default_rng([self.seed, 1])
        drawn = []
        for start, stop in zip(of_label.indptr[:-1], of_label.indptr[1:], strict=True):
            in_turn = (texts[row] for row in rng.permutation(of_label.indices[start:stop]).tolist())
            drawn.append([text for text in in_turn if text and not text.isspace()][:at_most])
        return drawn


def _one_in_ten(counts_L: IntArray, rng: np.random.Generator) -> IntArray:
    order = np.argsort(-counts_L, kind="stable")
    order = order[counts_L[order] > 0]
    strata = order[: len(order) // ONE_IN * ONE_IN].reshape(-1, ONE_IN)
    return np.sort(strata[np.arange(len(strata)), rng.integers(ONE_IN, size=len(strata))])


def _without(corpus: Corpus, held: IntArray) -> Corpus:
    kept = np.setdiff1d(np.arange(len(corpus.labels)), held)
    columns = (corpus.labels.uids, corpus.labels.names, corpus.labels.texts)
    labels = Labels(*(Texts.of(column).take(kept) for column in columns))
    train, rest = corpus.split("train"), corpus.split("train").positives[:, kept]
    rows = np.flatnonzero(np.diff(rest.indptr) > 0)
    filtered = None if train.filtered is None else csr_matrix(train.filtered)[:, kept]
    narrow = dataclasses.replace(train, positives=csr_matrix(rest), filtered=filtered)
    return Corpus(corpus.name, labels, train=narrow.take(rows))
