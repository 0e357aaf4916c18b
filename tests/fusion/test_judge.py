"""What a judge says and looks at, against loops; judges to JSON and back."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from primexmc.fusion import candidates
from primexmc.fusion.blend import Blend, Weights
from primexmc.fusion.judge import FARTHEST, FEATURES, SCALE, Judge, features
from primexmc.fusion.votes import Votes

F, H, NUM_LABELS, NUM_QUERIES = len(FEATURES), 3, 9, 25


def made_judge(seed=0, without=()):
    rng = np.random.default_rng(seed)
    says = np.array([name not in without for name in FEATURES], dtype=np.float32)
    a, d = rng.standard_normal((F, H)) * says[:, None], rng.standard_normal(F) * says
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32).tolist()  # noqa: E731
    rows = tuple(map(tuple, a.astype(np.float32).tolist()))
    spread = (0.1 + rng.random(F).astype(np.float32)).tolist()
    return Judge(*map(tuple, (draw(F), spread)), rows, *map(tuple, (draw(H), draw(H), d.tolist())))


def slow_judgement(judge, x):
    """Of one candidate, in float64."""
    x = [(value - mean) / spread for value, mean, spread in zip(x, judge.mean_F, judge.spread_F, strict=True)]
    x = [min(max(value, -FARTHEST), FARTHEST) for value in x]
    said = sum(value * d for value, d in zip(x, judge.d_F, strict=True))
    for unit in range(len(judge.a_H)):
        inner = judge.a_H[unit] + sum(value * row[unit] for value, row in zip(x, judge.a_FH, strict=True))
        said += judge.b_H[unit] * math.tanh(inner)
    return SCALE * said


def test_what_it_says():
    rng, judge = np.random.default_rng(1), made_judge()
    x = (4 * rng.standard_normal((5, 6, F))).astype(np.float32)
    said = judge(x)
    assert said.dtype == np.float32
    for row, column in np.ndindex(said.shape):
        assert said[row, column] == pytest.approx(slow_judgement(judge, x[row, column].tolist()), abs=1e-5)
    assert judge(x[:1, :1]).shape == (1, 1) and judge(x[:0]).shape == (0, 6)


@pytest.mark.parametrize("size", [1, 2**23])
def test_the_nearest_query_with_the_label(size, monkeypatch):
    """Also where its cosine is below 0, and where there are fewer queries than neighbours."""
    monkeypatch.setattr(candidates, "CELLS_AT_ONCE", size)
    rng = np.random.default_rng(2)
    unit = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((NUM_QUERIES + 7, 3))).float(), dim=1)
    h, q = unit[:NUM_QUERIES], unit[NUM_QUERIES:].numpy()
    holds = rng.random((NUM_QUERIES, NUM_LABELS)) < 0.15
    holds[:, 4] = False
    ids = np.stack([rng.permutation(np.append(np.arange(NUM_LABELS), -1))[:6] for _ in q])
    for num_neighbours in (4, 20, 60):
        votes = Votes(h, csr_matrix(holds.astype(np.float32)), num_neighbours)
        near = votes.neighbours(q)
        shares, nearest = votes.with_nearest(near, ids, 0.05)
        assert np.array_equal(shares, votes.scores(near, ids, 0.05)) and nearest.dtype == np.float32
        for row, column in np.ndindex(ids.shape):
            cosines = (h.double().numpy() @ q[row].astype(np.float64)).tolist()
            known = sorted(range(NUM_QUERIES), key=lambda n: -cosines[n])[:num_neighbours]
            with_label = [cosines[n] for n in known if ids[row, column] >= 0 and holds[n, ids[row, column]]]
            assert nearest[row, column] == pytest.approx(max(with_label, default=0.0), abs=1e-6)
            assert (shares[row, column] > 0) == bool(with_label)
    counts = votes.queries_of(np.arange(NUM_LABELS)[None])[0]
    assert counts.tolist() == holds.sum(0).tolist() and counts[4] == 0


def test_what_it_looks_at():
    rng = np.random.default_rng(3)
    total, cosine, words, share, nearest = (rng.standard_normal((2, 4)).astype(np.float32) for _ in range(5))
    share, queries = np.maximum(share, 0), np.array([[0, 1, 5, 700]] * 2, dtype=np.float32)
    total[1, 3] = cosine[1, 3] = -np.inf
    x = features(total, cosine, words, (share, nearest, queries))
    assert x.dtype == np.float32 and x.shape == (2, 4, F)
    for row, column in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]:
        at = row, column
        log = math.log(1 + max(1, queries[at]))
        assert x[at].tolist() == pytest.approx(
            [total[at], cosine[at], words[at], share[at], nearest[at], float(share[at] > 0), log]
        )
    assert np.isneginf(x[1, 3, 0]) and not x[1, 3, 1:].any() and np.isfinite(made_judge()(x)).all()
    silent = features(total, cosine, None, None)
    assert not silent[0, :, 2:6].any() and np.allclose(silent[0, :, 6], math.log(2))


def test_whom_it_asks():
    memory = ("votes", "nearest", "voted", "queries")
    assert made_judge().asks_memory and made_judge().asks_words
    assert not made_judge(without=memory).asks_memory and made_judge(without=memory).asks_words
    assert not made_judge(without=("words",)).asks_words
    deaf = Weights(judge=made_judge(without=(*memory, "words")))
    assert not deaf.asks_memory and not deaf.asks_words
    assert Weights(judge=made_judge()).asks_memory and Weights(lexical=0.1, judge=deaf.judge).asks_words


def test_to_json_and_back():
    blend = Blend({"all": Weights(0.1, 0.2, 0.05, judge=made_judge()), "theta": Weights()}, "all")
    again = Blend.from_dict(json.loads(json.dumps(blend.to_dict())))
    assert again == blend
    x = np.random.default_rng(4).standard_normal((2, 3, F)).astype(np.float32)
    assert np.array_equal(again.of("all").judge(x), blend.of("all").judge(x))


@pytest.mark.parametrize(
    "damage",
    [
        {"mean_F": [0.0]},
        {"a_FH": [[0.0] * (H + 1)] * F},
        {"b_H": [0.0] * (H + 1)},
        {"spread_F": [0.0] * F},
        {"d_F": [math.nan] * F},
        {"a_H": "abc"},
        {"d_F": None},
    ],
)
def test_a_damaged_one(damage):
    with pytest.raises((TypeError, ValueError)):
        Judge.from_dict(dataclasses.asdict(made_judge()) | damage)
