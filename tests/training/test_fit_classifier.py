"""The classifier's losses and gradients against slow loops in float64, and what its training leaves alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from model.cases_of_labels import NUM_LABELS, made_model
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.losses import Positives
from primexmc.training import fit_classifier as module
from primexmc.training.classifier_labels import AllLabels, SampledLabels, softmax_over_all
from primexmc.training.fit_classifier import Orders, dropped_out, fit_classifier
from primexmc.training.row_adam import RowAdam

Q, L, D = 7, 9, 5
STEP = 1e-6


def vectors(seed, num, dim=D):
    """Not of length 1."""
    return np.random.default_rng(seed).normal(size=(num, dim))


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def pairs(seed, most=3):
    """Each query has one to `most` labels; label 8 has none."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((Q, L), np.float32)
    for row in dense:
        row[rng.choice(L - 1, rng.integers(1, most + 1), replace=False)] = 1
    return csr_matrix(dense)


def slow_gradient(loss, w):
    """By differences."""
    found = np.zeros_like(w)
    for place in np.ndindex(w.shape):
        up, down = w.copy(), w.copy()
        up[place] += STEP
        down[place] -= STEP
        found[place] = (loss(up) - loss(down)) / (2 * STEP)
    return found


def slow_softmax(w, q, true, hidden, temperature):
    """The mean over queries of the mean over their labels of -log(e^p / (e^p + sum of e^n))."""
    w, total = unit(w), 0.0
    for row in range(Q):
        wrong = sum(math.exp(q[row] @ w[n] / temperature) for n in range(L) if not true[row, n] and not hidden[row, n])
        own = [math.exp(q[row] @ w[p] / temperature) for p in range(L) if true[row, p]]
        total += sum(-math.log(p / (p + wrong)) for p in own) / len(own) / Q
    return total


def slow_margin(w, q, true, hidden, columns, margin, tau):
    """Hinges against the batch's wrong labels, weighted by softmax over those that violate."""
    w, total = unit(w), 0.0
    for row in range(Q):
        (p,) = [n for n in columns if true[row, n]]
        wrong = [n for n in columns if not true[row, n] and not hidden[row, n]]
        hinges = {n: margin - q[row] @ w[p] + q[row] @ w[n] for n in wrong}
        violators = {n: math.exp(q[row] @ w[n] / tau) for n, hinge in hinges.items() if hinge > 0}
        total += sum(share / sum(violators.values()) * hinges[n] for n, share in violators.items()) / Q
    return total


@pytest.mark.parametrize("size", [1, 4, 9, 50])
@pytest.mark.parametrize("filtered", [False, True])
def test_softmax_over_all_labels(size, filtered):
    true, hidden = pairs(1), pairs(2) if filtered else csr_matrix((Q, L), dtype=np.float32)
    q, w, temperature = unit(vectors(3, Q)), vectors(4, L), 0.3
    given = Positives.from_csr(true, filtered=hidden if filtered else None)
    w_LD = torch.tensor(w, requires_grad=True)
    loss = softmax_over_all(torch.tensor(q), w_LD, given, temperature, size, bf16=False)
    (gradient,) = torch.autograd.grad(loss, w_LD)
    true, hidden = true.toarray(), hidden.toarray()
    assert loss.item() == pytest.approx(slow_softmax(w, q, true, hidden, temperature), abs=1e-10)
    slow = slow_gradient(lambda w: slow_softmax(w, q, true, hidden, temperature), w)
    np.testing.assert_allclose(gradient.numpy(), slow, atol=1e-8)


def test_softmax_in_bf16_is_near():
    """Rounding what is multiplied moves the cosines by less than a hundredth, and what is added up is not rounded."""
    true, q, w = pairs(1), unit(vectors(3, Q, 64)), vectors(4, L, 64)
    found = []
    for bf16 in (False, True):
        w_LD = torch.tensor(w, dtype=torch.float32, requires_grad=True)
        given = Positives.from_csr(true)
        loss = softmax_over_all(torch.tensor(q, dtype=torch.float32), w_LD, given, 0.1, 4, bf16=bf16)
        found.append((loss.item(), *torch.autograd.grad(loss, w_LD)))
    assert found[1][0] == pytest.approx(found[0][0], rel=0.02) and found[1][0] != found[0][0]
    assert torch.nn.functional.cosine_similarity(found[0][1].ravel(), found[1][1].ravel(), 0) > 0.999
    assert found[1][1].dtype == torch.float32


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("margin", [0.2, 0.7])
def test_sampled_labels(filtered, margin):
    """With one label a query nothing is left to chance: the pool is all of them."""
    true = pairs(5, most=1)
    hidden = pairs(6) if filtered else None
    settings = Settings().with_values({"classifier.margin": margin, "classifier.learning_rate": 0.01}, "test")
    q, w = unit(vectors(7, Q)), vectors(8, L)
    w_LD = torch.tensor(w)
    labels = SampledLabels(w_LD, true, hidden, settings)
    met = labels.make(np.arange(Q), 0)
    columns = np.flatnonzero(true.toarray().any(0))
    assert met.labels_M.tolist() == columns.tolist()
    loss, by_w_MD = labels.gradient(torch.tensor(q), met)
    assert torch.equal(loss, labels.learn(torch.tensor(q), met, 0.01))
    true, hidden = true.toarray(), np.zeros((Q, L)) if hidden is None else hidden.toarray()

    def slow(w):
        return slow_margin(w, q, true, hidden, columns, margin, settings.loss.softmax_tau)

    assert float(loss) == pytest.approx(slow(w), abs=1e-10) and loss > 0.01
    expected = slow_gradient(slow, w)
    np.testing.assert_allclose(by_w_MD.numpy(), expected[columns], atol=1e-7)
    assert not np.delete(expected, columns, 0).any()
    moved = (w_LD.numpy() != w).any(1)
    assert set(np.flatnonzero(moved)) <= set(columns) and moved.any()


def test_adam_of_rows():
    """Rows move as they would alone, but for the steps that they all count; by loops."""
    w, rng = vectors(1, 4, 3), np.random.default_rng(2)
    w_LD = torch.tensor(w)
    adam, mean, square = RowAdam(w_LD), np.zeros((4, 3)), np.zeros((4, 3))
    for step, rows in enumerate([[0, 2], [2], [0, 1, 2], [1]], 1):
        gradient = rng.normal(size=(len(rows), 3))
        adam.step(torch.tensor(rows), torch.tensor(gradient), 0.1)
        for row, by in zip(rows, gradient, strict=True):
            mean[row] = 0.9 * mean[row] + 0.1 * by
            square[row] = 0.999 * square[row] + 0.001 * by**2
            w[row] -= 0.1 * mean[row] / (1 - 0.9**step) / (np.sqrt(square[row] / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(w_LD.numpy(), w, atol=1e-10)


def test_all_labels_learn_what_the_gradient_says():
    """Adam's first step goes against its sign, as far as the learning rate in each number."""
    true, q, w = pairs(1), unit(vectors(3, Q)), vectors(4, L)
    settings = Settings().with_values({"classifier.learning_rate": 0.01, "classifier.temperature": 0.3}, "test")
    w_LD = torch.tensor(w)
    labels = AllLabels(w_LD, true, None, settings, bf16=False)
    labels.learn(torch.tensor(q), labels.make(np.arange(Q), 0), 0.01)
    slow = slow_gradient(lambda w: slow_softmax(w, q, true.toarray(), np.zeros((Q, L)), 0.3), w)
    np.testing.assert_allclose(w_LD.grad.numpy(), slow, atol=1e-8)
    np.testing.assert_allclose(w_LD.numpy(), w - 0.01 * np.sign(slow), atol=1e-5)


def test_dropped_out():
    h = torch.nn.functional.normalize(torch.randn(200, 64), dim=1)
    generator = torch.Generator().manual_seed(0)
    dropped = dropped_out(h, 0.5, generator)
    assert 0.45 < (dropped == 0).float().mean() < 0.55
    torch.testing.assert_close(dropped.norm(dim=1), torch.ones(200))
    kept = dropped != 0
    ratio = torch.where(kept, dropped / h, torch.nan)
    assert (ratio.nan_to_num(-9).amax(1) - ratio.nan_to_num(9).amin(1)).abs().max() < 1e-4, "one factor a query"
    torch.testing.assert_close(dropped_out(h, 0.0, generator), h)


def made(labels, **values):
    return made_model(
        **{"classifier.labels": labels, "classifier.epochs": 20, "classifier.batch_size": 16, "classifier.dropout": 0.2}
        | values
    )


def right_at_1(model, vectors_LD):
    best = (model.memory.h_ND.float() @ vectors_LD.T).argmax(1).numpy()
    return model.memory.positives.toarray()[np.arange(len(best)), best].mean()


@pytest.mark.parametrize("labels", ["all", "sampled"])
def test_it_fits_the_training_queries_better_than_the_prototypes(labels):
    rate = {"all": 0.01, "sampled": 0.05}[labels]
    model = made(labels, **{"classifier.learning_rate": rate})
    told = []
    w_LD = fit_classifier(model, model.memory, tell=told.append)
    assert right_at_1(model, w_LD) >= right_at_1(model, model.prototypes_LD) + 0.1
    assert [row["epoch"] for row in told] == list(range(1, 21)) and told[-1]["loss"] < told[0]["loss"]
    torch.testing.assert_close(w_LD.norm(dim=1), torch.ones(NUM_LABELS))
    assert torch.equal(w_LD[3], model.prototypes_LD[3]), "it has no training query"
    assert torch.equal(w_LD, fit_classifier(model, model.memory)), "the same seed is the same W"
    other = made(labels, **{"classifier.learning_rate": rate, "training.seed": 1})
    other.prototypes_LD = model.prototypes_LD
    assert not torch.equal(w_LD, fit_classifier(other, model.memory))


@pytest.mark.parametrize("labels", ["all", "sampled"])
def test_nothing_learned_is_the_prototypes(labels):
    model = made(labels, **{"classifier.learning_rate": 0.0})
    torch.testing.assert_close(fit_classifier(model, model.memory), model.prototypes_LD)


def test_similar_queries_meet_where_labels_are_drawn():
    """Clusters of 8 stay together in the batches of `sampled`; every epoch has every query once, in another order."""
    values = {"sampling.largest_cluster": 8, "classifier.batch_size": 16}
    model = made("sampled", **values)
    orders = Orders(model.memory.h_ND, model.settings)
    for epoch in (0, 1):
        batches = orders.of(epoch)
        assert sorted(np.concatenate(batches)) == list(range(len(model.memory)))
        split = [len({number for number, batch in enumerate(batches) if set(batch) & set(members)}) for members in (
            np.flatnonzero(orders.clusters == cluster) for cluster in range(10))]  # fmt: skip
        assert max(split) == 1
    assert any(set(a) != set(b) for a, b in zip(orders.of(0), orders.of(1), strict=True))
    assert Orders(model.memory.h_ND, made("all", **values).settings).clusters is None


def test_it_can_be_stopped_after_every_step(monkeypatch):
    model, steps = made("all"), []
    assert module.fit_classifier is fit_classifier

    def pause():
        steps.append(len(steps))
        if len(steps) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_classifier(model, model.memory, pause=pause)
    assert len(steps) == 7 and model.classifier_LD is None
