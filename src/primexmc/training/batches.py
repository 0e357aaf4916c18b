"""Batches: queries, the labels drawn for them, and who is true for whom; made ahead of the loop in a second thread.

Shapes: Q queries, M labels of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..config import Settings
from ..losses.positives import Positives
from ..model.token_batch import TokenBatch, to_device
from ..sampling.negatives import Mined, label_source
from ..sampling.positives import PositiveSampler, batch_labels, batch_positives, label_weights
from .ahead import made_ahead
from .data import TrainingData
from .more_queries import MoreQueries, QuerySampler

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One step's input. `positives` is Q x M, judged against all of a query's training labels."""

    queries_Q: Tensor
    labels_M: Tensor
    tokens: TokenBatch  # first the queries', then the labels'
    positives: Positives
    positives_transposed: Positives
    more: MoreQueries | None = None


class BatchMaker:
    """Makes a batch from its queries and its place in training, so that a resumed run makes the same ones."""

    def __init__(self, data: TrainingData, settings: Settings, device: torch.device) -> None:
        sampling = settings.sampling
        weights_L = label_weights(data.positives, data.inverse_propensity_L, sampling)
        self.data, self.seed, self.device = data, settings.training.seed, device
        self.sampler = PositiveSampler(data.positives, weights_L, sampling.positives_per_query)
        self.labels = label_source(data.positives, sampling)
        self.queries = QuerySampler(data, sampling.queries_per_label, device) if sampling.queries_per_label else None

    def make(self, queries: IntArray, step: int) -> Batch:
        """The step seeds the draw."""
        rng = np.random.default_rng([self.seed, step])
        labels = batch_labels(self.sampler.draw(queries, rng), self.labels.draw(queries, rng))
        positives, filtered = batch_positives(self.data.positives, queries, labels), None
        if self.data.filtered is not None:
            filtered = batch_positives(self.data.filtered, queries, labels)
        return Batch(
            queries_Q=to_device(torch.from_numpy(queries), self.device),
            labels_M=to_device(torch.from_numpy(labels), self.device),
            tokens=self._tokens(queries, labels),
            positives=Positives.from_csr(positives, self.device, filtered=filtered),
            positives_transposed=Positives.from_csr(
                positives.T.tocsr(), self.device, filtered=None if filtered is None else filtered.T.tocsr()
            ),
            more=None if self.queries is None else self.queries.draw(queries, labels, positives, rng),
        )

    def meet(self, mined_NK: npt.NDArray[np.integer]) -> None:
        """From now on these are the nearest wrong labels of each query; only a source that mines asks for them."""
        if isinstance(self.labels, Mined):
            self.labels.table_NK = mined_NK

    def _tokens(self, queries: IntArray, labels: IntArray) -> TokenBatch:
        """Both go through the encoder together."""
        query_ids, query_offsets = self.data.query_tokens.take(queries)
        label_ids, label_offsets = self.data.label_tokens.take(labels)
        offsets = np.concatenate((query_offsets, query_offsets[-1] + label_offsets[1:]))
        return TokenBatch.from_arrays(np.concatenate((query_ids, label_ids)), offsets, self.device)

    def stream(self, batches: Sequence[IntArray], first_step: int) -> Iterator[Batch]:
        """The batches in order."""
        return made_ahead(self.make, batches, first_step)
