"""What a training step of a method costs, counted from its settings: texts through the encoder, inner products.

After the paper's Appendix E, with numbers in place of orders: K B + K |S| texts, B |S| products a matrix.
Shapes: N training queries, L labels, Q queries and M labels of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..config import Settings
from ..data.corpus import Corpus
from ..data.propensity import inverse_propensity
from ..evaluation.table import aligned
from ..losses.log_sum_exp import CELLS_AT_ONCE
from ..model.encode import pick_device
from ..sampling.batches import ngame_batches
from ..sampling.negatives import Mined, label_source
from ..sampling.positives import PositiveSampler, batch_labels, label_weights
from ..training.data import usable_queries

COLUMNS = {
    "queries_a_step": "queries",
    "labels_a_step": "labels",
    "texts_a_step": "texts encoded",
    "products_a_step": "products",
    "search_texts_a_step": "texts for searches",
    "search_products_a_step": "products for searches",
}


def step_costs(corpus: Corpus, settings: Settings) -> dict[str, int]:
    """The first batch's, which is of random queries; later ones are of similar queries and share more labels.

    What is computed twice, so that it need not be kept, counts twice. Searches for mined negatives are shared out
    over the steps between them.
    """
    Q, M = _batch(corpus, settings)
    texts = (Q + M) * (2 if settings.training.texts_at_once else 1)
    costs = {
        "queries_a_step": Q,
        "labels_a_step": M,
        "texts_a_step": texts,
        "products_a_step": Q * M * _num_matrices(settings, Q * M),
    }
    if settings.sampling.negatives == "mined":
        N, L, epochs = len(usable_queries(corpus.split("train"))), len(corpus.labels), settings.training.epochs
        steps = max(1, round(settings.sampling.mining * epochs)) * -(-N // settings.training.batch_size)
        costs |= {"search_texts_a_step": round(L / steps), "search_products_a_step": round(N * L / steps)}
    return costs


def costs_table(costs: dict[str, dict[str, int]]) -> str:
    """A line a method."""
    columns = [name for name in COLUMNS if any(name in entry for entry in costs.values())]
    lines = [[method, *(f"{entry[name]:,}" if name in entry else "" for name in columns)]
             for method, entry in costs.items()]  # fmt: skip
    return aligned([["a step", *(COLUMNS[name] for name in columns)], *lines])


def _batch(corpus: Corpus, settings: Settings) -> tuple[int, int]:
    """How many queries and labels the first batch holds."""
    train, sampling, data = corpus.split("train"), settings.sampling, settings.data
    positives = train.positives[usable_queries(train)]
    counts_L = np.bincount(train.positives.indices, minlength=len(corpus.labels))
    propensity_L = inverse_propensity(counts_L, len(train), data.propensity_a, data.propensity_b)
    sampler = PositiveSampler(positives, label_weights(positives, propensity_L, sampling), sampling.positives_per_query)
    source, seed = label_source(positives, sampling), settings.training.seed
    if isinstance(source, Mined):
        source.table_NK = _any_table(positives.shape, sampling.mined_depth)
    N, size = positives.shape[0], settings.training.batch_size
    queries = ngame_batches(N, size, np.random.default_rng([seed, 0]))[0]
    rng = np.random.default_rng([seed, 0])
    return len(queries), len(batch_labels(sampler.draw(queries, rng), source.draw(queries, rng)))


def _any_table(shape: tuple[int, int], depth: int) -> Any:
    """As if a search had been made; which labels it found hardly changes how many they are."""
    return np.random.default_rng(0).integers(0, shape[1], (shape[0], min(depth, shape[1])), dtype=np.int32)


def _num_matrices(settings: Settings, cells: int) -> int:
    """Of Q x M similarities: query with prototype, query with label text; the reverse relation needs no other.

    In parts nothing is kept: each relation computes its own, and again for the gradient.
    """
    loss, enabled = settings.loss, settings.prototypes.enabled
    if _in_parts(settings, cells):
        weights = (loss.prototype_weight * enabled, loss.text_weight, loss.reverse_weight)
        return 2 * sum(weight > 0 for weight in weights)
    regularised = enabled and loss.name == "margin" and loss.regulariser_weight > 0
    text = bool(loss.text_weight or loss.reverse_weight or regularised)
    prototype = enabled and bool(loss.prototype_weight or regularised)
    return int(text) + int(prototype)


def _in_parts(settings: Settings, cells: int) -> bool:
    """Softmax losses compute a large matrix part by part, and again for the gradient."""
    device = pick_device(settings.training.device).type
    return settings.loss.name in ("softmax", "contrastive") and cells > CELLS_AT_ONCE[device]
