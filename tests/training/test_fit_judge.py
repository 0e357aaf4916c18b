"""The judge's loss and gradient against loops; when a judge is worth having, and what it must not look at."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.evaluation.metrics import metrics
from primexmc.fusion.judge import FEATURES
from primexmc.training.fit_judge import FEWEST, FOLDS, NEAREST, fit_judge, held_out_judgement, listwise
from primexmc.training.ndcg import Ndcg

SUM, COSINE, WORDS, VOTES, CLOSE = range(5)


def made_up(seed=0, size=480, candidates=6, trusted=True):
    """One candidate is right. By cosines it is hardly seen; the votes are right where the nearest query is near and
    point to a wrong one elsewhere. If they are not `trusted`, the sum knows all that can be known."""
    rng = np.random.default_rng(seed)
    x = np.zeros((size, candidates, len(FEATURES)), np.float32)
    right = np.arange(candidates) == rng.integers(0, candidates, (size, 1))
    near = rng.random((size, 1)) < 0.5
    x[:, :, COSINE] = 0.1 * rng.standard_normal(right.shape) + 0.1 * right
    if trusted:
        x[:, :, VOTES] = np.where(near, right, np.roll(right, 1, axis=1))
        x[:, :, CLOSE] = np.where(near, 0.9, 0.3)
    else:
        x[:, :, [VOTES, CLOSE]] = rng.random((*right.shape, 2))
    x[:, :, SUM] = x[:, :, COSINE]
    return x, right


def first_right(scores, right):
    return float(right[np.arange(len(right)), scores.argmax(1)].mean())


def test_the_loss_and_its_gradient():
    rng = np.random.default_rng(0)
    scores, right = rng.standard_normal((4, 5)), rng.random((4, 5)) < 0.4
    right[:, 0], right[3] = True, True
    loss, gradient = 0.0, np.zeros_like(scores)
    for row in range(4):
        wrong = [c for c in range(5) if not right[row, c]]
        chosen = [c for c in range(5) if right[row, c]]
        for c in chosen:
            among = math.exp(scores[row, c]) + sum(math.exp(scores[row, w]) for w in wrong)
            part = 1 / (len(chosen) * 4)
            loss -= part * math.log(math.exp(scores[row, c]) / among)
            gradient[row, c] += part * (math.exp(scores[row, c]) / among - 1)
            for w in wrong:
                gradient[row, w] += part * math.exp(scores[row, w]) / among
    s = torch.from_numpy(scores).requires_grad_()
    found = listwise(s, torch.from_numpy(right.astype(np.float64)))
    found.backward()
    assert float(found.detach()) == pytest.approx(loss, abs=1e-9)
    np.testing.assert_allclose(s.grad.numpy(), gradient, atol=1e-9)


def test_it_learns_when_votes_are_to_be_trusted():
    """No weight of the votes does: right and wrong ones are equally many."""
    x, right = made_up()
    fixed = max(first_right(x[:, :, COSINE] + w * x[:, :, VOTES], right) for w in (-0.1, 0.0, 0.05, 0.1, 0.3, 1.0))
    who_knows = first_right(x[:, :, COSINE] + x[:, :, VOTES] * np.where(x[:, :, CLOSE] > 0.5, 1, -1), right)
    assert first_right(x[:, :, SUM] + held_out_judgement(x, right), right) > who_knows - 0.05 > fixed + 0.1
    other, other_right = made_up(seed=1)
    assert first_right(other[:, :, SUM] + fit_judge(x, right)(other), other_right) > who_knows - 0.05


def test_where_there_is_nothing_to_learn_it_does_not_help():
    x, right = made_up(seed=1, trusted=False)
    with_judge = first_right(x[:, :, SUM] + held_out_judgement(x, right), right)
    assert with_judge < first_right(x[:, :, SUM], right)


def test_a_judgement_knows_nothing_of_its_own_fold():
    """Not the right answers, and of the other queries' features nothing either."""
    x, right = made_up()
    before, own = held_out_judgement(x, right), np.arange(len(x)) % FOLDS == 1
    changed_x, changed_right = x.copy(), right.copy()
    changed_right[own] = np.roll(right[own], 2, axis=1)
    own[1] = False
    changed_x[own] += 1
    after = held_out_judgement(changed_x, changed_right)
    assert np.array_equal(before[1], after[1])
    assert not np.array_equal(before[0], after[0]), "those that learn from it do change"


def test_what_is_no_candidate_teaches_nothing():
    x, right = made_up()
    more = np.zeros((len(x), 9, x.shape[2]), np.float32)
    more[:, :6], more[:, 6:, SUM] = x, -np.inf
    one, other = fit_judge(x, right), fit_judge(more, np.pad(right, ((0, 0), (0, 3))))
    assert np.abs(one(x) - other(x)).max() < 0.1 * one(x).std(), "but for the order of sums"


def test_a_voice_that_was_silent_has_no_weight():
    x, right = made_up()
    judge = fit_judge(x, right)
    assert judge.asks_memory and not judge.asks_words
    x[:, :, WORDS] = 7.0
    assert np.array_equal(judge(x), judge(made_up()[0])), "what it never heard it does not listen to"


def test_too_few_queries():
    x, right = made_up(size=FEWEST * FOLDS // (FOLDS - 1))
    assert fit_judge(x[: FEWEST - 1], right[: FEWEST - 1]) is None and fit_judge(x, right) is not None
    assert held_out_judgement(x, right) is not None and held_out_judgement(x[:-3], right[:-3]) is None
    assert fit_judge(x[:1], right[:1]) is None and fit_judge(x[:0], right[:0]) is None
    assert fit_judge(x, np.zeros_like(right)) is None
    far = np.pad(x, ((0, 0), (NEAREST, 0), (0, 0)))
    far[:, :NEAREST, SUM] = 9
    assert fit_judge(far, np.pad(right, ((0, 0), (NEAREST, 0)))) is None, "the right ones are not among the nearest"


def test_ndcg_is_the_metrics():
    rng = np.random.default_rng(5)
    for top in (5, 3, 8):
        truth = csr_matrix((rng.random((40, 12)) < 0.3).astype(np.float32))
        truth.data[::5] = 0  # stored, but no label
        scores = rng.standard_normal((40, 12))
        ids = np.argsort(-scores, axis=1)[:, :top]
        right = np.take_along_axis(truth.toarray() > 0, ids, axis=1)
        expected = metrics(np.pad(ids, ((0, 0), (0, max(0, 5 - top))), constant_values=-1), truth, truth)["nDCG@5"]
        assert 100 * Ndcg(truth)(right) == pytest.approx(expected)
    assert 100 * Ndcg(truth).of_scores(scores, truth.toarray() > 0) == pytest.approx(expected)
