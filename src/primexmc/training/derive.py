"""Settings that nobody named follow from the data and the hardware, each by a rule that can be said in a line.

Shapes: N training queries, L labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..data.corpus import Corpus
from ..data.texts import Texts

BYTES_PER_TOKEN = 4.0  # of English text, on the short side


class DataShape(NamedTuple):
    """What the rules look at."""

    num_queries: int
    num_labels: int
    labels_per_query: float
    query_bytes: int  # 95 % of the queries are no longer
    label_bytes: int


def shape_of(corpus: Corpus) -> DataShape:
    """Measured on the training split, validation included when it is to be taken from it."""
    train = corpus.split("train")
    return DataShape(
        num_queries=len(train),
        num_labels=len(corpus.labels),
        labels_per_query=train.positives.nnz / max(1, int((np.diff(train.positives.indptr) > 0).sum())),
        query_bytes=_long(Texts.of(train.texts)),
        label_bytes=_long(Texts.of(corpus.labels.texts)),
    )


def derived_settings(shape: DataShape, given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"training.epochs": 20, ...}` for every rule whose setting is not in `given`."""
    derived = {key: rule(shape) for key, rule in RULES.items() if key not in given}
    if "training.epochs" in derived and given.get("encoder.name", "static") != "static":
        derived["training.epochs"] = _epochs_of_a_transformer(shape)
    smallest = given.get("sampling.smallest_cluster")
    if "sampling.largest_cluster" in derived and isinstance(smallest, int):
        derived["sampling.largest_cluster"] = max(derived["sampling.largest_cluster"], smallest)
    return derived


def default_preset(has_gpu: bool) -> str:
    """The preset that stands in where none is named."""
    return "best" if has_gpu else "static-cpu"


def _long(texts: Texts) -> int:
    return int(np.quantile(np.diff(texts.offsets), 0.95)) if len(texts) else 0


def _tokens(num_bytes: int) -> int:
    """Room for 95 % of the texts: a multiple of 16 between 16 and 256."""
    return int(np.clip(16 * np.ceil(num_bytes / BYTES_PER_TOKEN / 16), 16, 256))


def _batch_size(shape: DataShape) -> int:
    """1600, and on small data so few that an epoch has 16 steps, but at least 32."""
    return int(np.clip(shape.num_queries // 16, 32, 1600))


def _epochs(shape: DataShape) -> int:
    """20, and on small data so many that 400,000 queries pass, at most 60."""
    return int(np.clip(400_000 // max(shape.num_queries, 1), 20, 60))


def _epochs_of_a_transformer(shape: DataShape) -> int:
    """20, and on small data so many that 1,600,000 queries pass, at most 60: it goes on learning for longer."""
    return int(np.clip(1_600_000 // max(shape.num_queries, 1), 20, 60))


def _largest_cluster(shape: DataShape) -> int:
    """About a query in 1,500, as a power of two between 4 and 1024: 32 for 50,000 queries, 64 for 100,000."""
    return int(np.clip(2 ** np.round(np.log2(max(shape.num_queries, 1) / 1500)), 4, 1024))


RULES: dict[str, Callable[[DataShape], Any]] = {
    "data.query_tokens": lambda shape: _tokens(shape.query_bytes),
    "data.label_tokens": lambda shape: _tokens(shape.label_bytes),
    "prototypes.num_free_vectors": lambda shape: max(1, min(65_536, shape.num_labels // 3)),
    "sampling.positives_per_query": lambda shape: 4 if shape.labels_per_query >= 4 else 2,
    "sampling.largest_cluster": _largest_cluster,
    "training.batch_size": _batch_size,
    "training.epochs": _epochs,
}
