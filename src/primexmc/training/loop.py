"""The training loop: one phase of training from its first epoch, or from where a checkpoint left it, to its end.

What it changes stands in state.py. "(wait)" marks the places where the CPU waits for the GPU.
Shapes: Q queries and M labels of a batch, N training queries, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..losses.objective import Objective
from ..losses.positives import Positives
from ..model.encode import autocast, encode_batch, quick_products
from ..model.in_parts import encode_in_parts
from ..sampling.batches import cluster_size, query_batches
from ..sampling.clusters import balanced_clusters
from .batches import Batch, BatchMaker
from .log import Log
from .mining import mine
from .optimiser import set_learning_rates
from .phase import Phase
from .state import Best, TrainingState

Validate = Callable[[TrainingState], dict[str, float]] | None
SELECTED_BY = "nDCG@5"


def run_phase(phase: Phase, state: TrainingState, log: Log, validate: Validate, save: Callable[[], None]) -> None:
    """Trains until `phase.last_epoch`; `save` is called after every step and decides itself whether one is due."""
    settings, schedule = phase.settings, phase.schedule
    objective = Objective(settings.loss, prototypes=settings.prototypes.enabled)
    maker = BatchMaker(phase.data, settings, state.device)
    state.network.train()
    while state.epoch < phase.last_epoch:
        # -- a new epoch: clusters and centroids from the stale bank where due, and the order of the queries
        if state.position == 0:
            if schedule.refreshes_at(state.epoch):
                refresh(phase, state)  # (wait)
            if schedule.mines_at(state.epoch):
                state.mined_NK = mine(phase, state)  # (wait)
            state.order_N, state.cuts = _order_queries(phase, state)
            state.totals.zero_()
        maker.meet(state.mined_NK)
        log.start_epoch(phase, state)
        # -- its batches
        for batch in maker.stream(np.split(state.order_N, state.cuts)[state.position :], state.step):
            set_learning_rates(state.optimiser, schedule.learning_rate_factor(state.step))
            _step(phase, state, objective, batch)
            state.step += 1
            state.position += 1
            log.step(state, len(batch.queries_Q))  # (wait) now and then
            save()  # (wait) when a checkpoint is due
        # -- its end
        state.epoch, state.position = state.epoch + 1, 0
        log.end_epoch(state)  # (wait)
        if validate is not None and phase.validates_after(state.epoch):
            _remember_best(state, log, validate(state))  # (wait)


def refresh(phase: Phase, state: TrainingState) -> None:
    """Clusters, and in `epoch` mode the centroids, from what the queries looked like when they were last in a batch."""
    settings = phase.settings
    if settings.prototypes.centroid_mode == "epoch":
        state.centroids.set_to_mean([state.query_bank_ND], phase.data.positives)
    if settings.sampling.batches != "random":
        size = cluster_size(state.epoch / phase.schedule.epochs, settings.sampling)
        num_clusters = -(-phase.data.num_queries // size)
        clusters = balanced_clusters(state.query_bank_ND, num_clusters, seed=settings.training.seed + state.epoch)
        state.cluster_of_N = clusters.cpu().numpy()


def _order_queries(phase: Phase, state: TrainingState) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([phase.settings.training.seed, state.epoch])
    clusters = state.cluster_of_N if len(state.cluster_of_N) else None
    settings, num_queries = phase.settings, phase.data.num_queries
    batches = query_batches(settings.sampling, num_queries, settings.training.batch_size, rng, clusters)
    return np.concatenate(batches), np.cumsum([len(batch) for batch in batches])[:-1]


def _step(phase: Phase, state: TrainingState, objective: Objective, batch: Batch) -> None:
    """Encode, compare, learn; then the bank and, in `ema` mode, the centroids follow."""
    network = state.network
    with autocast(state.device, phase.bf16):
        h_BD = encode_in_parts(network.encoder, batch.tokens, phase.settings.training.texts_at_once)
        h_QD, h_MD = h_BD[: len(batch.queries_Q)], h_BD[len(batch.queries_Q) :]
        z_MD = network.prototypes(h_MD, batch.labels_M, state.centroids) if objective.prototypes else None
    q_QD, l_MD = functional.normalize(h_QD.float(), dim=1), functional.normalize(h_MD.float(), dim=1)
    with quick_products(state.device, phase.bf16):
        loss, stats = objective(q_QD, l_MD, z_MD, batch.positives, batch.positives_transposed)
        state.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
    state.optimiser.step()
    with torch.no_grad():
        q_QD = q_QD.detach()
        state.see(batch.queries_Q, q_QD)
        if phase.settings.prototypes.centroid_mode == "ema":
            _move_centroids(phase, state, batch, q_QD)
        state.totals += torch.stack((stats["loss"], stats["violators"], torch.ones_like(stats["loss"])))


def _move_centroids(phase: Phase, state: TrainingState, batch: Batch, q_QD: Tensor) -> None:
    """Towards the mean of each label's queries in the batch, and of more where they are asked for. A label that met no
    query of its own, which a pool may bring, stays as it is."""
    positives_of_M = batch.positives_transposed
    if batch.more is not None:
        more_XD = functional.normalize(encode_batch(state.network.encoder, batch.more.tokens, phase.bf16), dim=1)
        state.see(batch.more.queries_X, more_XD)
        q_QD, positives_of_M = torch.cat([q_QD, more_XD]), batch.more.positives_of_M
    met_M1 = (positives_of_M.count_Q > 0)[:, None]
    mean_MD = torch.where(met_M1, _mean_of_positives(q_QD, positives_of_M), state.centroids.c_LD[batch.labels_M])
    state.centroids.move(batch.labels_M, mean_MD, phase.settings.prototypes.ema_decay)


def _mean_of_positives(q_QD: Tensor, positives_of_M: Positives) -> Tensor:
    """For each label of the batch the mean of its queries there: one number whatever their order."""
    sum_MD = q_QD.new_zeros(len(positives_of_M.count_Q), q_QD.shape[1])
    sum_MD.index_add_(0, positives_of_M.rows_E, q_QD[positives_of_M.columns_E])
    return sum_MD / positives_of_M.count_Q.clamp(min=1)[:, None]


def _remember_best(state: TrainingState, log: Log, scores: dict[str, float]) -> None:
    log.validation(state, scores)
    if scores[SELECTED_BY] >= state.best.score:  # of equals the one that trained longer
        network = {name: value.detach().clone() for name, value in state.network.state_dict().items()}
        state.best = Best(scores[SELECTED_BY], state.epoch, scores, network)
