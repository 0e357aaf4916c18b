"""The file protocol with a peer that is a page of numpy, and what is said when a peer is missing or goes wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from compare.cases import FAKE_PEER, QUICK, THINGS, make_checkout, make_corpus

from primexmc.compare import peer_files
from primexmc.compare.compare import compare
from primexmc.config import Settings
from primexmc.data.tfidf import WORD
from primexmc.errors import UserError
from primexmc.evaluation.baselines import popularity
from primexmc.evaluation.evaluate import score


def run(corpus, out, checkout, method="pecos-xrlinear-1", **options):
    options = {"settings": QUICK, "say": lambda _: None} | options
    return compare(corpus, [method], out=out, checkout=checkout, **options)


@pytest.mark.parametrize("filtered", [False, True])
def test_a_peer_is_judged_like_everyone_else(tmp_path, filtered):
    corpus, checkout = make_corpus(filtered), make_checkout(tmp_path / "repository")
    (row,) = run(corpus, tmp_path / "out", checkout)
    expected = score(popularity(corpus.train, corpus.test), corpus.test, corpus.train, Settings().data)
    for name in ("P@1", "P@5", "PSP@1", "PSP@5", "R@100"):
        assert row[name] == pytest.approx(expected[name], abs=0.001), name
    assert row["filtered"] is filtered and row["mode"] == "-" and row["chosen_on"] == "rule"
    assert row["text_len"] == "whole" and row["peer"] == "fake 1" and 1.5 <= row["train_s"] < 5
    assert row["settings"]["num_trees"] == 1 and row["settings"]["label_rows"] is True
    assert not (tmp_path / "out" / ".running").exists()


def test_what_a_peer_reads(tmp_path):
    corpus, checkout = make_corpus(filtered=True), make_checkout(tmp_path / "repository")
    settings = {**QUICK, "training.seed": 7, "training.threads": 3, "search.top": 4}
    run(corpus, tmp_path / "out", checkout, "pecos-xrlinear-3", settings=settings)
    seen = json.loads((checkout / "benchmarks" / "peers" / "seen.json").read_text())
    words = {word for text in [*corpus.train.texts, *THINGS] for word in WORD.findall(text.lower())}
    num_rows = len(corpus.train) + len(THINGS)
    assert seen["train"] == [num_rows, len(words)] and seen["labels"] == [num_rows, len(THINGS)]
    assert seen["queries"] == [len(corpus.test), len(words)]
    task, most_filtered = seen["task"], max(len(corpus.test.filtered[[row]].indices) for row in range(25))
    assert (task["seed"], task["threads"], task["top"]) == (7, 3, 4 + most_filtered)
    assert task["settings"]["num_trees"] == 3 and task["settings"]["nr_splits"] == 16


def test_label_rows_are_positive_for_themselves(tmp_path):
    from scipy.sparse import load_npz

    corpus = make_corpus()
    peer_files.write_features(tmp_path, corpus, label_rows=True)
    labels, features = load_npz(tmp_path / "train_labels.npz"), load_npz(tmp_path / "train_features.npz")
    num_train = len(corpus.train)
    np.testing.assert_array_equal(labels[num_train:].toarray(), np.eye(len(THINGS)))
    np.testing.assert_array_equal(labels[:num_train].toarray(), corpus.train.positives.toarray())
    assert all(features[num_train + row].nnz == 1 for row in range(len(THINGS))), "each label is one word here"
    peer_files.write_features(tmp_path, corpus, label_rows=False)
    assert load_npz(tmp_path / "train_labels.npz").shape == (num_train, len(THINGS))


def test_filtered_pairs_are_left_out_before_the_cut():
    queries = make_corpus(filtered=True).test
    rng = np.random.default_rng(0)
    candidates = np.stack([rng.permutation(len(THINGS))[:8] for _ in range(len(queries))])
    candidates[3, 5:] = -1
    found = peer_files.without_filtered(candidates, queries, 5)
    for row in range(len(queries)):
        removed = set(queries.filtered[[row]].indices.tolist())
        expected = [label for label in candidates[row].tolist() if label >= 0 and label not in removed]
        assert found[row].tolist() == (expected + [-1] * 5)[:5]


def test_a_missing_environment_is_told_with_what_to_do(tmp_path):
    checkout = make_checkout(tmp_path / "repository")
    with pytest.raises(UserError, match=r"omikuji-bonsai: .*omikuji.* is not there; run `make peers`"):
        run(make_corpus(), tmp_path / "out", checkout, "omikuji-bonsai")
    assert not (tmp_path / "out").exists()


def test_without_a_checkout_it_is_told_where_peers_live(tmp_path, monkeypatch):
    monkeypatch.setattr("primexmc.compare.compare.find_checkout", lambda: None)
    with pytest.raises(UserError, match="run from a checkout"):
        run(make_corpus(), tmp_path / "out", None)


def test_a_row_that_is_there_needs_no_environment(tmp_path):
    made = run(make_corpus(), tmp_path / "out", make_checkout(tmp_path / "repository"))
    assert run(make_corpus(), tmp_path / "out", tmp_path / "elsewhere") == made


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("raise SystemExit('no such tree')", "pecos failed .no such tree.; see .*peer.log"),
        ("pass", "cannot be read"),
        (FAKE_PEER.replace("np.tile(best", "np.tile(best + 1"), "is not 25 rows of label ids below 12"),
        (FAKE_PEER.replace("(queries.shape[0], 1)", "(2, 1)"), "is not 25 rows of label ids below 12"),
    ],
    ids=["fails", "says nothing", "unknown labels", "too few rows"],
)
def test_a_peer_that_goes_wrong(tmp_path, script, sentence):
    checkout = make_checkout(tmp_path / "repository", script)
    with pytest.raises(UserError, match=sentence):
        run(make_corpus(), tmp_path / "out", checkout)
    assert not (tmp_path / "out" / "field.json").exists()
