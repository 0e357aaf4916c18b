"""Which queries meet which labels."""

from __future__ import annotations

from .batches import cluster_size, ngame_batches, query_batches
from .clusters import balanced_clusters
from .negatives import LabelSource, label_source
from .positives import PositiveSampler, batch_labels, batch_positives, label_weights

__all__ = [
    "LabelSource",
    "PositiveSampler",
    "balanced_clusters",
    "batch_labels",
    "batch_positives",
    "cluster_size",
    "label_source",
    "label_weights",
    "ngame_batches",
    "query_batches",
]
