"""The lexical voice of a trained model: what its words teach of the labels that it takes for each other.

Shapes: N training queries, B queries of a group of similar ones, U labels of the group, L labels, k negatives.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix

from ..data.tfidf import TfIdf
from ..fusion.lexical import Lexical, unknown_bias
from ..fusion.linear import fit_linear
from ..model.encode import as_float32
from ..model.memory import Memory
from ..model.model import PrimeModel

SMALLEST_WEIGHT = 0.1  # smaller ones change nothing that was measured
MOST_ENTRIES = 1_000_000_000  # words in all pairs of a query and a label: 13 million take a second with two threads
FEWEST_NEGATIVES, FEWEST_WORDS = 10, 32
MOST_PRODUCTS = 1e13  # of numbers in the search for wrong labels
ROWS_AT_ONCE = 4096


def fit_lexical(model: PrimeModel, memory: Memory, filtered: csr_matrix | None = None) -> Lexical:
    """Fitted on all that the memory holds. Long texts teach by their weightiest words where all would be too many."""
    fusion = model.settings.fusion
    tfidf = TfIdf([*memory.texts, *model.labels.texts])
    x_NW = tfidf.vectors(memory.texts)
    labels = memory.positives.nnz / max(1, len(memory))
    num_words, num_negatives = affordable(x_NW, labels, fusion.lexical_negatives)
    negatives = nearest_wrong_labels(model, memory, num_negatives, filtered)
    weights_WL, bias_L = fit_linear(
        heaviest(x_NW, num_words),
        memory.positives,
        negatives,
        strength=fusion.lexical_strength,
        iterations=fusion.lexical_iterations,
        threads=torch.get_num_threads(),
    )
    untrained_L = np.bincount(memory.positives.indices, minlength=len(bias_L)) == 0
    bias_L[untrained_L] = unknown_bias(bias_L[~untrained_L])
    return Lexical(tfidf, weights_WL, bias_L).compact(SMALLEST_WEIGHT)


def affordable(x_NW: csr_matrix, labels: float, most_negatives: int) -> tuple[int, int]:
    """How many words and wrong labels a text may have. Wrong labels teach more than a text's lighter words do, so words
    are the first to be left out."""
    longest, texts = int(np.diff(x_NW.indptr).max(initial=1)), max(1, x_NW.shape[0])
    room = MOST_ENTRIES / texts
    if x_NW.nnz / texts * (most_negatives + labels) <= room:
        return longest, most_negatives
    words = max(FEWEST_WORDS, int(room / (most_negatives + labels)))
    negatives = int(room / min(words, x_NW.nnz / texts) - labels)
    return words, max(min(FEWEST_NEGATIVES, most_negatives), min(negatives, most_negatives))


def nearest_wrong_labels(
    model: PrimeModel, memory: Memory, num_negatives: int, filtered: csr_matrix | None = None
) -> csr_matrix:
    """N x L: what the model takes each query's labels for, by exact search; pairs that are filtered are passed over.

    Where that would be too many products, a sample of the queries has to do.
    """
    every = max(1, round(len(memory) * model.prototypes_LD.numel() / MOST_PRODUCTS))
    rows, labels = [], []
    for start in range(0, len(memory), ROWS_AT_ONCE):
        row_B = np.arange(start, min(start + ROWS_AT_ONCE, len(memory)))
        row_B = row_B[row_B % every == 0]
        passed_over = memory.positives[row_B]
        passed_over = passed_over if filtered is None else csr_matrix(passed_over + filtered[row_B])
        ids_BK, _ = model.search(as_float32(memory.h_ND[torch.from_numpy(row_B)]), num_negatives, passed_over)
        rows.append(np.repeat(row_B, (ids_BK >= 0).sum(1)))
        labels.append(ids_BK[ids_BK >= 0])
    at, chosen = (np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in (rows, labels))
    shape = (len(memory), len(model.labels))
    return csr_matrix((np.ones(len(at), np.float32), (at, chosen)), shape=shape)


def heaviest(x_NW: csr_matrix, most: int) -> csr_matrix:
    """At most so many words a text: those that weigh most."""
    if np.diff(x_NW.indptr).max(initial=0) <= most:
        return x_NW
    rows = np.repeat(np.arange(x_NW.shape[0]), np.diff(x_NW.indptr))
    order = np.lexsort((-x_NW.data, rows))
    rank = np.arange(len(rows)) - np.repeat(x_NW.indptr[:-1], np.diff(x_NW.indptr))
    kept = np.sort(order[rank < most])
    starts = np.concatenate([[0], np.bincount(rows[kept], minlength=x_NW.shape[0]).cumsum()])
    return csr_matrix((x_NW.data[kept], x_NW.indices[kept], starts), shape=x_NW.shape)
