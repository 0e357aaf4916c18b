"""The lexical voice of a trained model: what its words teach of the labels that it takes for each other.

Shapes: N training queries, B queries of a group of similar ones, U labels of the group, L labels, k negatives.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy.sparse import csr_matrix

from ..data.tfidf import TfIdf
from ..fusion.lexical import Lexical, unknown_bias
from ..fusion.linear import fit_linear
from ..losses.negatives import hardest_negatives
from ..losses.positives import Positives
from ..model.memory import Memory
from ..model.model import PrimeModel
from ..sampling.clusters import balanced_clusters
from ..sampling.positives import batch_positives

GROUP = 1024  # queries
SMALLEST_WEIGHT = 0.1  # smaller ones change nothing that was measured
MOST_ENTRIES = 40_000_000  # of the fit's design matrix: about a GB
FEWEST_NEGATIVES, FEWEST_WORDS = 10, 16


def fit_lexical(model: PrimeModel, memory: Memory, filtered: csr_matrix | None = None) -> Lexical:
    """Fitted on all that the memory holds. Long texts teach by their weightiest words where all would be too many."""
    fusion = model.settings.fusion
    tfidf = TfIdf([*memory.texts, *model.labels.texts])
    x_NW = tfidf.vectors(memory.texts)
    words, labels = x_NW.nnz / max(1, len(memory)), memory.positives.nnz / max(1, len(memory))
    room = MOST_ENTRIES / max(1, len(memory))  # entries a query
    num_negatives = int(np.clip(room / max(1, words) - labels, FEWEST_NEGATIVES, fusion.lexical_negatives))
    x_NW = heaviest(x_NW, max(FEWEST_WORDS, int(room / (num_negatives + labels))))
    negatives = similar_labels(model, memory, num_negatives, filtered)
    weights_WL, bias_L = fit_linear(
        x_NW, memory.positives, negatives, strength=fusion.lexical_strength, iterations=fusion.lexical_iterations
    )
    untrained_L = np.bincount(memory.positives.indices, minlength=len(bias_L)) == 0
    bias_L[untrained_L] = unknown_bias(bias_L[~untrained_L])
    return Lexical(tfidf, weights_WL, bias_L).compact(SMALLEST_WEIGHT)


def similar_labels(
    model: PrimeModel, memory: Memory, num_negatives: int, filtered: csr_matrix | None = None
) -> csr_matrix:
    """N x L: for each query the wrong labels that the model likes best, among the labels of similar queries.

    Pairs that are filtered are neither right nor wrong.
    """
    z_LD, rows, labels = model.prototypes_LD, [], []
    for group_B in _groups(memory, model):
        labels_U = np.unique(memory.positives[group_B].indices).astype(np.int64)
        passed_over = None if filtered is None else batch_positives(filtered, group_B, labels_U)
        right = batch_positives(memory.positives, group_B, labels_U)
        true = Positives.from_csr(right, z_LD.device, filtered=passed_over)
        h_BD = memory.h_ND[torch.from_numpy(group_B)].to(z_LD.device).float()
        s_BU = h_BD @ z_LD[torch.from_numpy(labels_U).to(z_LD.device)].float().T
        negatives = hardest_negatives(s_BU, true, num_negatives)
        row, column = negatives.valid_Qk.cpu().numpy().nonzero()
        labels.append(labels_U[negatives.index_Qk.cpu().numpy()[row, column]])
        rows.append(group_B[row])
    at, chosen = (np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in (rows, labels))
    shape = (len(memory), len(z_LD))
    return csr_matrix((np.ones(len(at), np.float32), (at, chosen)), shape=shape)


def heaviest(x_NW: csr_matrix, most: int) -> csr_matrix:
    """At most so many words a text: those that weigh most."""
    rows = np.repeat(np.arange(x_NW.shape[0]), np.diff(x_NW.indptr))
    order = np.lexsort((-x_NW.data, rows))
    rank = np.arange(len(rows)) - np.repeat(x_NW.indptr[:-1], np.diff(x_NW.indptr))
    kept = np.sort(order[rank < most])
    starts = np.concatenate([[0], np.bincount(rows[kept], minlength=x_NW.shape[0]).cumsum()])
    return csr_matrix((x_NW.data[kept], x_NW.indices[kept], starts), shape=x_NW.shape)


def _groups(memory: Memory, model: PrimeModel) -> Iterator[np.ndarray]:
    h_ND = memory.h_ND.to(model.device).float()
    num_groups = max(1, -(-len(memory) // GROUP))
    cluster_N = balanced_clusters(h_ND, num_groups, seed=model.settings.training.seed).cpu().numpy()
    order, starts = np.argsort(cluster_N, kind="stable"), np.bincount(cluster_N, minlength=num_groups).cumsum()
    yield from (group for group in np.split(order, starts[:-1]) if len(group))
