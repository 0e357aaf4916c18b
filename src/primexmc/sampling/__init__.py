"""Which queries meet which labels."""

from __future__ import annotations

from .batches import cluster_size, ngame_batches
from .clusters import balanced_clusters
from .positives import PositiveSampler, batch_labels, batch_positives

__all__ = [
    "PositiveSampler",
    "balanced_clusters",
    "batch_labels",
    "batch_positives",
    "cluster_size",
    "ngame_batches",
]
