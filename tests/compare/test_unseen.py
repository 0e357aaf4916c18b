"""A tenth of the labels held out and added later: who is held out, how it is judged, and what stands in unseen.json."""

from __future__ import annotations

import json

import numpy as np
import pytest
from compare.cases import QUICK, THINGS, make_corpus
from scipy.sparse import csr_matrix

from primexmc.compare.held_out import HeldOut
from primexmc.compare.unseen import judged, unseen
from primexmc.data.corpus import Corpus, Labels, Split
from primexmc.errors import UserError


def random_corpus(num_queries=300, num_labels=57, seed=0):
    """Frequencies fall with the label's number; the last three have no training query."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, num_labels + 1)
    chance[-3:] = 0
    splits = []
    for size in (num_queries, 60):
        dense = (rng.random((size, num_labels)) < 0.6 * chance).astype(np.float32)
        texts = [f"text {size} {row}" if row != 4 else "" for row in range(size)]
        splits.append(Split(texts, csr_matrix(dense), [str(row) for row in range(size)]))
    names = [f"label {n}" for n in range(num_labels)]
    return Corpus("made up", Labels(names, names, names), train=splits[0], test=splits[1])


def test_one_of_every_ten_by_frequency_is_held_out():
    corpus = random_corpus()
    held_out = HeldOut.of(corpus, 3)
    counts = np.asarray(corpus.train.positives.sum(axis=0)).ravel().astype(int)
    order = [n for n in sorted(range(57), key=lambda n: (-counts[n], n)) if counts[n]]
    for start in range(0, len(order) - 9, 10):
        assert len(set(order[start : start + 10]) & set(held_out.held.tolist())) == 1
    assert len(held_out.held) == len(order) // 10 > 3
    assert HeldOut.of(corpus, 3).held.tolist() == held_out.held.tolist() != HeldOut.of(corpus, 4).held.tolist()


def test_training_knows_nothing_of_them():
    corpus = random_corpus()
    held_out = HeldOut.of(corpus, 0)
    known, dense = held_out.known, corpus.train.positives.toarray()
    kept = [n for n in range(57) if n not in held_out.held]
    assert list(known.labels.uids) == [f"label {n}" for n in kept] and known.test is None
    rows = [row for row in range(len(dense)) if dense[row, kept].any()]
    assert list(known.train.texts) == [corpus.train.texts[row] for row in rows] and len(rows) < len(dense)
    assert np.array_equal(known.train.positives.toarray(), dense[np.ix_(rows, kept)])


def test_examples_are_training_queries_of_the_label():
    corpus = random_corpus()
    held_out = HeldOut.of(corpus, 0)
    one, four = held_out.examples(1), held_out.examples(4)
    assert held_out.examples(0) == [[] for _ in held_out.held] and four == held_out.examples(4)
    for label, first, some in zip(held_out.held, one, four, strict=True):
        own = [corpus.train.texts[row] for row in corpus.train.positives[:, label].nonzero()[0] if row != 4]
        assert len(some) == min(4, len(own)) == len(set(some)) and set(some) <= set(own) and some[:1] == first


def test_judged_by_loops():
    corpus = random_corpus()
    held_out = HeldOut.of(corpus, 0)
    ids = np.array([np.random.default_rng(row).permutation(57)[:20] for row in range(60)])
    scores = judged(ids, corpus.test, held_out)
    for name, wanted in (("new", set(held_out.held.tolist())), ("old", set(range(57)) - set(held_out.held.tolist()))):
        recalls, firsts = [], []
        for row in range(60):
            true = set(corpus.test.positives[row].indices.tolist()) & wanted
            if true:
                recalls.append(len(true & set(ids[row, :10].tolist())) / len(true))
                firsts.append(ids[row, 0] in true)
        assert scores[f"{name} R@10"] == pytest.approx(100 * np.mean(recalls), abs=1e-3)
        assert scores[f"{name} P@1"] == pytest.approx(100 * np.mean(firsts), abs=1e-3)
        assert scores[f"{name} queries"] == len(recalls)


def test_rows_and_what_is_not_made_twice(tmp_path, monkeypatch):
    said = []
    given = {"out": tmp_path, "preset": "static-cpu", "settings": QUICK, "quiet": True, "say": said.append}
    rows = unseen(make_corpus(), **given)
    wanted = [("zero-shot", "by their texts"), ("prime-softmax", "not added")]
    wanted += [("prime-softmax", f"{n} examples") for n in (0, 1, 4)] + [("prime-softmax", "trained on them")]
    wanted += [("ngame", "not added"), *(("ngame", f"{n} examples") for n in (0, 1, 4))]
    assert [(row["method"], row["new labels"]) for row in rows] == wanted
    assert json.loads((tmp_path / "unseen.json").read_text(encoding="utf-8")) == rows
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["unseen.json"]
    by_name = {(row["method"], row["new labels"]): row for row in rows}
    assert by_name["prime-softmax", "not added"]["new R@10"] == 0, "what is not there is not found"
    assert by_name["prime-softmax", "4 examples"]["new R@10"] > 0 and "add_s" in by_name["ngame", "0 examples"]
    monkeypatch.setattr("primexmc.compare.recipe.train", None)
    assert unseen(make_corpus(), **given) == rows


def test_what_is_refused(tmp_path):
    with pytest.raises(UserError, match="methods of ours"):
        unseen(make_corpus(), ["popularity"], out=tmp_path)
    few = [[n] for n in range(5)]
    corpus = Corpus.from_lists([f"a {THINGS[n]}" for n in range(5)], few, THINGS[:5])
    with pytest.raises(UserError, match="fewer than 10 labels"):
        HeldOut.of(corpus, 0)
