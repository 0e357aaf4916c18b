"""The classifier W of a trained model: a vector for each label, learned while the encoder stands still.

The queries' embeddings are those that the memory holds, so no text is encoded. W begins with the prototypes.
Shapes: N training queries, Q queries of a batch, L labels, D dimensions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional

from ..config import Settings
from ..model.encode import quick_products, wants_bf16
from ..model.memory import Memory
from ..model.model import PrimeModel
from ..sampling.batches import ngame_batches, query_batches
from ..sampling.clusters import balanced_clusters
from .ahead import made_ahead
from .classifier_labels import AllLabels, ClassifierLabels, SampledLabels
from .log import peak_memory_gib

Tell = Callable[[dict[str, Any]], None]


def fit_classifier(
    model: PrimeModel,
    memory: Memory,
    filtered: csr_matrix | None = None,
    *,
    tell: Tell = lambda numbers: None,
    pause: Callable[[], None] = lambda: None,
) -> Tensor:
    """W_LD, each row of length 1; a label without training queries keeps its prototype.

    `tell` gets each epoch's numbers; `pause` is called after every step and may end it all by raising.
    """
    settings, device = model.settings, model.device
    chosen = settings.classifier
    w_LD, h_ND = model.prototypes_LD.float().clone(), memory.h_ND.to(device)
    labels = _labels(w_LD, memory.positives, filtered, settings)
    generator = torch.Generator(device).manual_seed(settings.training.seed)
    orders = Orders(h_ND, settings)
    num_steps, step = chosen.epochs * len(orders.of(0)), 0
    started = time.perf_counter()
    bf16 = wants_bf16(settings.training.precision, device)
    for epoch in range(chosen.epochs):
        batches, total = orders.of(epoch), torch.zeros((), device=device)
        for met in made_ahead(labels.make, batches, step):
            q_QD = dropped_out(h_ND[met.queries_Q].float(), chosen.dropout, generator)
            with quick_products(device, bf16):
                total += labels.learn(q_QD, met, chosen.learning_rate * (1 - step / num_steps))
            step += 1
            pause()
        loss = float(total) / max(1, len(batches))  # (wait)
        seconds, memory_gib = time.perf_counter() - started, peak_memory_gib(device)
        tell({"epoch": epoch + 1, "step": step, "loss": loss, "seconds": seconds, "memory_gib": memory_gib})
    return _finished(w_LD, model.prototypes_LD, memory.positives)


def dropped_out(h_QD: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Queries of length 1 again, with a share of their numbers put to 0."""
    if share == 0:
        return functional.normalize(h_QD, dim=1)
    kept_QD = torch.rand(h_QD.shape, generator=generator, device=h_QD.device) >= share
    return functional.normalize(h_QD * kept_QD, dim=1)


class Orders:
    """The batches of each epoch: similar queries together where labels are drawn for the batch, else at random. The
    embeddings stand still, so that they are clustered once."""

    def __init__(self, h_ND: Tensor, settings: Settings) -> None:
        self.settings, self.num_queries = settings, len(h_ND)
        self.clusters: np.ndarray[Any, Any] | None = None
        if settings.classifier.labels == "sampled" and settings.sampling.batches != "random":
            num_clusters = -(-len(h_ND) // settings.sampling.largest_cluster)
            self.clusters = balanced_clusters(h_ND, num_clusters, seed=settings.training.seed).cpu().numpy()

    def of(self, epoch: int) -> list[np.ndarray[Any, Any]]:
        settings, size = self.settings, self.settings.classifier.batch_size
        rng = np.random.default_rng([settings.training.seed, epoch])
        if self.clusters is None:
            return ngame_batches(self.num_queries, size, rng)
        return query_batches(settings.sampling, self.num_queries, size, rng, self.clusters)


def _labels(w_LD: Tensor, positives: csr_matrix, filtered: csr_matrix | None, settings: Settings) -> ClassifierLabels:
    if settings.classifier.labels == "sampled":
        return SampledLabels(w_LD, positives, filtered, settings)
    bf16 = wants_bf16(settings.training.precision, w_LD.device)
    return AllLabels(w_LD, positives, filtered, settings, bf16=bf16)


def _finished(w_LD: Tensor, prototypes_LD: Tensor, positives: csr_matrix) -> Tensor:
    trained_L = np.bincount(positives.indices, minlength=len(w_LD)) > 0
    trained_L1 = torch.from_numpy(trained_L)[:, None].to(w_LD.device)
    return torch.where(trained_L1, functional.normalize(w_LD, dim=1), prototypes_LD.float())
