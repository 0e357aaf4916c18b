"""Made-up training data as tokens, of the size and shape of LF-AmazonTitles-131K; nothing is downloaded or carried."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from primexmc.data.propensity import inverse_propensity
from primexmc.data.texts import Texts
from primexmc.data.tokens import RaggedTokens
from primexmc.training.data import TrainingData

LABELS_PER_QUERY = 8  # two draws with replacement then seldom fall on one label
LONGEST = 32


def training_data(num_queries: int, num_labels: int, vocabulary: int, mean_tokens: float = 12.0) -> TrainingData:
    """Labels are Zipf-distributed (exponent 1/2): 6,400 draws hold more than 5,500 different ones."""
    rng = np.random.default_rng(0)
    positives = _positives(num_queries, num_labels, rng)
    counts_L = np.bincount(positives.indices, minlength=num_labels)
    return TrainingData(
        query_texts=Texts.of([]),  # only the finished model would keep them
        query_tokens=_tokens(num_queries, vocabulary, mean_tokens, rng),
        label_tokens=_tokens(num_labels, vocabulary, mean_tokens, rng),
        positives=positives,
        inverse_propensity_L=inverse_propensity(counts_L, num_queries, 0.6, 2.6),
    )


def _positives(num_queries: int, num_labels: int, rng: np.random.Generator) -> csr_matrix:
    """Rank r is drawn with probability proportional to r^-1/2: its distribution function is a square root."""
    drawn = (rng.random((num_queries, LABELS_PER_QUERY)) ** 2 * num_labels).astype(np.int32)
    drawn = rng.permutation(num_labels).astype(np.int32)[drawn]
    rows = np.repeat(np.arange(num_queries), LABELS_PER_QUERY)
    matrix = csr_matrix((np.ones(drawn.size, np.float32), (rows, drawn.ravel())), shape=(num_queries, num_labels))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _tokens(count: int, vocabulary: int, mean: float, rng: np.random.Generator) -> RaggedTokens:
    """Lengths from 3 up, around the mean, special tokens included."""
    lengths = np.clip(3 + rng.gamma(3.0, (mean - 3) / 3, count).round(), 3, LONGEST).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    ids = rng.integers(1, vocabulary, offsets[-1]).astype("<u2" if vocabulary <= 1 << 16 else "<i4")
    return RaggedTokens(ids, offsets)
