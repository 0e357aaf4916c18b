"""More queries for moving centroids, and labels that a pool brings without any query: against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import batch_of, static_encoder
from training.cases import make_corpus, make_phase, quick

from primexmc.config import Settings
from primexmc.errors import UserError
from primexmc.losses.objective import Objective
from primexmc.training import loop
from primexmc.training.batches import BatchMaker
from primexmc.training.begin import begin_state

CPU = torch.device("cpu")
CORPUS = make_corpus(60)
TRUE = CORPUS.train.positives.toarray() > 0
EMA = {"prototypes__centroid_mode": "ema", "prototypes__ema_decay": 0.75, "sampling__positives_per_query": 1}


def after_a_step(queries, **values):
    torch.manual_seed(0)
    encoder = static_encoder()
    phase = make_phase(CORPUS, encoder, quick(**(EMA | values)))
    state = begin_state(phase, encoder, CPU)
    before = state.centroids.c_LD.clone(), state.query_bank_ND.clone()
    batch = BatchMaker(phase.data, phase.settings, CPU).make(np.array(queries), 0)
    loop._step(phase, state, Objective(phase.settings.loss, prototypes=True), batch)
    return state, batch, *before


def test_the_mean_is_over_the_batch_and_what_was_drawn():
    queries = [3, 14, 15, 9, 26]
    state, batch, c, bank = after_a_step(queries, sampling__queries_per_label=3)
    more = batch.more.queries_X.tolist()
    assert len(more) == len(set(more)) > 5 and not set(more) & set(queries)
    assert all(TRUE[query, batch.labels_M.numpy()].any() for query in more), "each is some batch label's"
    met = [*queries, *more]
    for label in range(10):
        expected = c[label].double().numpy()
        if label in batch.labels_M.tolist():
            own = [state.query_bank_ND[query].double().numpy() for query in met if TRUE[query, label]]
            assert own, "its own drawn query at least"
            expected = 0.75 * expected + 0.25 * sum(own) / len(own)
        np.testing.assert_allclose(state.centroids.c_LD[label].numpy(), expected, atol=1e-6)
    encoder = state.network.encoder.eval()  # those drawn are seen after the step
    for query in more:
        h = encoder(batch_of(encoder, [CORPUS.train.texts[query]]))
        seen = torch.nn.functional.normalize(h, dim=1)[0].detach()
        np.testing.assert_allclose(state.query_bank_ND[query].numpy(), seen.numpy(), atol=1e-6)
    np.testing.assert_allclose(state.query_bank_ND[queries].numpy(), bank[queries].numpy(), atol=1e-6)


def test_none_without_being_asked_for():
    assert after_a_step([3, 14, 15])[1].more is None


def test_labels_that_met_no_query_stay():
    state, batch, c, bank = after_a_step([3], sampling__negatives="all")
    assert batch.labels_M.tolist() == list(range(10))
    for label in range(10):
        moved = 0.75 * c[label] + 0.25 * bank[3] if TRUE[3, label] else c[label]
        np.testing.assert_allclose(state.centroids.c_LD[label].numpy(), moved.numpy(), atol=1e-6)


def test_it_is_for_moving_averages():
    with pytest.raises(UserError, match=r"queries_per_label.*centroid_mode=ema"):
        Settings().with_values({"sampling.queries_per_label": 1}, "test")


@pytest.mark.parametrize("exact", [True, False])
def test_the_finished_centroids(exact, tmp_path):
    """Exact at prediction, or as the moving average left them."""
    from primexmc.training.train import train

    values = quick(**EMA) | {"training.validate_every": 0, "prototypes.exact_centroids": exact}
    model = train(CORPUS, "static-cpu", values, quiet=True)
    h = torch.from_numpy(model.encode(list(CORPUS.train.texts)))
    means = torch.stack([h[torch.from_numpy(TRUE[:, label])].mean(0) for label in range(10)])
    assert torch.allclose(model.centroids.c_LD, means, atol=1e-5) is exact


def test_centroids_that_never_move():
    torch.manual_seed(0)
    state, _, c, _ = after_a_step([3, 4, 5], prototypes__centroid_mode="start")
    assert torch.equal(state.centroids.c_LD, c)
