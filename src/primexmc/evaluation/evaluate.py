"""A model's predictions for a split of a corpus, and how good they are."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..config import DataSettings, Settings
from ..data.corpus import Corpus, DataWarning, Labels, Split
from ..data.propensity import inverse_propensity
from ..errors import UserError
from .buckets import BucketMetrics, frequency_buckets
from .hits import IntArray, find_hits, label_counts
from .metrics import RankingMetrics

Progress = Callable[[int, int], None]


class Evaluable(Protocol):
    """All that evaluation asks of a model. Its ids are its own: `labels` says which label each one is."""

    @property
    def labels(self) -> Labels: ...
    @property
    def label_counts_L(self) -> NDArray[np.int64]: ...
    @property
    def num_train_queries(self) -> int: ...
    @property
    def settings(self) -> Settings: ...
    def rank(
        self, texts: Sequence[str], top: int, filtered: csr_matrix | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...


def evaluate(
    model: Evaluable, corpus: Corpus, split: str = "tst", *, progress: Progress | None = None
) -> dict[str, Any]:
    """P, nDCG, PSP, PSnDCG at 1, 3, 5 and R at 10 and 100 in percent, "queries", "labels", "seconds", and "buckets".

    Labels meet by uid. Those of the corpus that the model does not know stay as positives that it cannot find.
    """
    started = time.perf_counter()
    queries = corpus.split(split)
    if len(queries) == 0:
        raise UserError(f"{corpus.name}: the split {split} has no queries to evaluate.")
    meeting = meet(model.labels, corpus.labels)
    scorer = Scorer.of(model, meeting)
    for start, pred_ids in predict_split(model, queries, meeting):
        stop = start + len(pred_ids)
        scorer.update(pred_ids, meeting.to_model(queries.positives[start:stop]))
        if progress is not None:
            progress(stop, len(queries))
    if scorer.num_unfindable:
        warnings.warn(
            f"{corpus.name}: {scorer.num_unfindable} positives of the split {split} belong to labels that the model "
            "does not know; they count as not found.",
            DataWarning,
            stacklevel=2,
        )
    return scorer.result() | {"seconds": time.perf_counter() - started}


def score(pred_ids: Any, queries: Split, train: Split, settings: DataSettings) -> dict[str, Any]:
    """The same numbers for any method's predictions, in the corpus' ids; `train` is the full published train."""
    counts_L = label_counts(train.positives)
    scorer = Scorer(counts_L, len(train), settings.propensity_a, settings.propensity_b, len(counts_L))
    scorer.update(pred_ids, queries.positives)
    return scorer.result()


def predict_split(model: Evaluable, queries: Split, meeting: Meeting) -> Iterator[tuple[int, IntArray]]:
    """`(first row, ids of the best labels)` chunk by chunk, ids in the model's order; one chunk of texts at a time."""
    size, top = model.settings.search.batch_size, model.settings.search.top
    for start in range(0, len(queries), size):
        rows = slice(start, min(start + size, len(queries)))
        filtered = None if queries.filtered is None else meeting.to_model(queries.filtered[rows], known_only=True)
        ids, _ = model.rank(queries.texts[rows], top, filtered)
        yield start, ids


@dataclass(frozen=True)
class Meeting:
    """Where the corpus' labels are in the model; those that it does not know follow after its own."""

    model_id_L: IntArray
    num_model_labels: int
    num_labels: int  # the model's and the unknown ones

    def to_model(self, matrix: Any, *, known_only: bool = False) -> csr_matrix:
        """The same rows with the model's columns."""
        rows = csr_matrix(matrix)
        columns = self.model_id_L[rows.indices]
        moved = csr_matrix((rows.data, columns, rows.indptr), shape=(rows.shape[0], self.num_labels))
        moved.sort_indices()
        return moved[:, : self.num_model_labels] if known_only else moved


def meet(model_labels: Labels, corpus_labels: Labels) -> Meeting:
    """Match the labels of a corpus with a model's by uid."""
    num_model = len(model_labels)
    if model_labels.uids is corpus_labels.uids:
        return Meeting(np.arange(num_model, dtype=np.int64), num_model, num_model)
    id_of = {uid: number for number, uid in enumerate(model_labels.uids)}
    model_id_L = np.fromiter((id_of.get(uid, -1) for uid in corpus_labels.uids), np.int64, len(corpus_labels))
    unknown_L = np.flatnonzero(model_id_L < 0)
    model_id_L[unknown_L] = num_model + np.arange(len(unknown_L))
    return Meeting(model_id_L, num_model, num_model + len(unknown_L))


class Scorer:
    """All metrics and buckets of one method's predictions, chunk by chunk."""

    def __init__(
        self, label_counts_L: IntArray, num_train_queries: int, a: float, b: float, num_predictable: int
    ) -> None:
        self.num_predictable = num_predictable
        self.num_unfindable = 0
        self.ranking = RankingMetrics(inverse_propensity(label_counts_L, num_train_queries, a, b))
        self.buckets = BucketMetrics(frequency_buckets(label_counts_L))

    @classmethod
    def of(cls, model: Evaluable, meeting: Meeting) -> Scorer:
        """For a model that meets a corpus: unknown labels were never trained."""
        counts_L = np.zeros(meeting.num_labels, dtype=np.int64)
        counts_L[: meeting.num_model_labels] = model.label_counts_L
        data = model.settings.data
        a, b = data.propensity_a, data.propensity_b
        return cls(counts_L, model.num_train_queries, a, b, meeting.num_model_labels)

    def update(self, pred_ids: Any, positives: csr_matrix) -> None:
        """Add some queries."""
        hits = find_hits(pred_ids, positives)
        self.num_unfindable += int(np.count_nonzero(hits.true_labels_T >= self.num_predictable))
        self.ranking.update_hits(hits)
        self.buckets.update_hits(hits)

    def result(self) -> dict[str, Any]:
        """One dict of metrics, counts and buckets."""
        counts = {"queries": self.ranking.num_queries, "labels": self.num_predictable}
        return {**self.ranking.result(), **counts, "buckets": self.buckets.result()}
