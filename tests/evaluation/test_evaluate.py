"""Evaluation of a model whose labels may be others, in another order; chunk by chunk."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from evaluation.slow_metrics import slow_buckets, slow_metrics
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.data.corpus import Corpus, Labels, Split
from primexmc.errors import UserError
from primexmc.evaluation.evaluate import evaluate
from primexmc.retrieval.exact import ExactIndex

NUM_LABELS, NUM_QUERIES, TOP = 30, 25, 12


class FakeModel:
    """Knows a fixed vector for every label uid and query text; its own label order is `uids`."""

    def __init__(self, uids, counts, vectors, chunk=10):
        self.labels = Labels(uids, uids, uids)
        self.label_counts_L = np.array([counts[uid] for uid in uids])
        self.num_train_queries = 60
        self.settings = Settings().with_values({"search.batch_size": chunk, "search.top": TOP}, "test")
        self.vectors = vectors
        self.index = ExactIndex(torch.from_numpy(np.array([vectors[uid] for uid in uids])))
        self.chunks = []

    def rank(self, texts, top, filtered=None):
        self.chunks.append(len(texts))
        return self.index.search(np.array([self.vectors[text] for text in texts]), top, filtered)


@pytest.fixture
def world():
    """Random vectors, counts, a test split with a filter, and labels in the corpus' order."""
    rng = np.random.default_rng(0)
    uids = [f"l{number}" for number in range(NUM_LABELS)]
    texts = [f"q{number}" for number in range(NUM_QUERIES)]
    vectors = {name: rng.standard_normal(5).astype(np.float32) for name in (*uids, *texts)}
    counts = {uid: int(rng.integers(0, 20)) for uid in uids}
    positives = csr_matrix((rng.random((NUM_QUERIES, NUM_LABELS)) < 0.12).astype(np.float32))
    filtered = csr_matrix((rng.random((NUM_QUERIES, NUM_LABELS)) < 0.2).astype(np.float32))
    split = Split(texts, positives, texts, filtered)
    corpus = Corpus("made up", Labels(uids, uids, uids), test=split)
    return SimpleNamespace(uids=uids, vectors=vectors, counts=counts, split=split, corpus=corpus)


def expected(world, known):
    """The slow way, in the corpus' ids: rank the known labels that are not filtered."""
    pred = []
    for row, text in enumerate(world.split.texts):
        banned = set(world.split.filtered[[row]].indices.tolist())
        able = [n for n, uid in enumerate(world.uids) if uid in known and n not in banned]
        able.sort(key=lambda n: -float(world.vectors[text] @ world.vectors[world.uids[n]]))
        pred.append((able + [-1] * TOP)[:TOP])
    true = [set(world.split.positives[[row]].indices.tolist()) for row in range(NUM_QUERIES)]
    counts = [world.counts[uid] if uid in known else 0 for uid in world.uids]
    train = [{label for label, count in enumerate(counts) if query < count} for query in range(60)]
    return slow_metrics(pred, true, train, NUM_LABELS), slow_buckets(pred, true, counts)


def assert_agrees(result, world, known):
    scores, buckets = expected(world, known)
    assert scores["P@1"] > 0
    for name, value in scores.items():
        assert result[name] == pytest.approx(value), name
    for bucket in ("head", "torso", "tail"):
        for name in ("P@5", "R@5", "queries", "positives"):
            assert result["buckets"][bucket][name] == pytest.approx(buckets[bucket][name]), (bucket, name)


@pytest.mark.parametrize("order", ["same", "reversed", "shuffled"])
def test_labels_meet_by_uid_whatever_their_order(world, order):
    uids = {
        "same": world.uids,
        "reversed": world.uids[::-1],
        "shuffled": world.uids[::3] + world.uids[1::3] + world.uids[2::3],
    }[order]
    model = FakeModel(uids, dict.fromkeys(world.uids, 7) | {world.uids[0]: 21, world.uids[1]: 14}, world.vectors)
    world.counts = dict(zip(uids, model.label_counts_L.tolist(), strict=True))
    result = evaluate(model, world.corpus)
    scores, _ = expected(world, set(world.uids))
    for name, value in scores.items():
        assert result[name] == pytest.approx(value), name
    assert result["queries"] == NUM_QUERIES and result["labels"] == NUM_LABELS and result["seconds"] > 0
    assert model.chunks == [10, 10, 5], "texts are encoded chunk by chunk"


def test_all_numbers_and_buckets_for_the_same_labels(world):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate(FakeModel(world.uids, world.counts, world.vectors), world.corpus, "test")
    assert_agrees(result, world, set(world.uids))
    assert {"P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "PSnDCG@5", "R@10"} <= result.keys()


def test_labels_unknown_to_the_model_cannot_be_found(world):
    known = world.uids[10:]
    extra = "only the model knows it"
    vectors = world.vectors | {extra: np.full(5, -9, np.float32)}
    model = FakeModel([*known, extra], world.counts | {extra: 3}, vectors)
    lost = int(world.split.positives[:, :10].nnz)
    with pytest.warns(UserWarning, match=f"{lost} positives") as caught:
        result = evaluate(model, world.corpus)
    assert len(caught) == 1
    scores, _ = expected(world, set(known))
    for name in ("P@1", "P@5", "nDCG@5", "R@10"):
        assert result[name] <= scores[name] + 1e-9
    no_extra = FakeModel(known, world.counts, world.vectors)
    with pytest.warns(UserWarning, match=f"{lost} positives"):
        assert_agrees(evaluate(no_extra, world.corpus), world, set(known))


def test_progress_is_told_after_each_chunk(world):
    told = []
    evaluate(
        FakeModel(world.uids, world.counts, world.vectors),
        world.corpus,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(10, 25), (20, 25), (25, 25)]


def test_a_split_without_queries_is_refused(world):
    nothing = Split([], csr_matrix((0, NUM_LABELS)), [])
    with pytest.raises(UserError, match="no queries"):
        evaluate(FakeModel(world.uids, world.counts, world.vectors), Corpus("none", world.corpus.labels, test=nothing))
