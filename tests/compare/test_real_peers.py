"""The real peers on a corpus that any of them must solve; where `make peers` was not run they are left out."""

from __future__ import annotations

import dataclasses

import pytest
from compare.cases import make_corpus, make_split
from scipy.sparse import csr_matrix, vstack

from primexmc.compare.compare import compare
from primexmc.compare.peer import find_checkout
from primexmc.compare.registry import find_method

METHODS = ["pecos-xrlinear-3", "omikuji-parabel", "omikuji-bonsai", "bm25"]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_peer_finds_labels_that_are_named(tmp_path, name):
    checkout, peer = find_checkout(), find_method(name).peer
    if checkout is None or not (checkout / ".peers" / peer / "bin" / "python").exists():
        pytest.skip(f"`make peers` was not run: there is no .peers/{peer}")
    train = make_split(0, 300)
    positives = vstack([train.positives[:-1], csr_matrix((1, train.positives.shape[1]), dtype="float32")], format="csr")
    odd = dataclasses.replace(train, texts=["", *train.texts[1:]], positives=positives)
    corpus = dataclasses.replace(make_corpus(), train=odd)  # a text without words, and one without labels
    settings = {"training.threads": 1, "search.top": 5}
    (row,) = compare(corpus, [name], out=tmp_path, settings=settings, say=lambda _: None)
    assert row["P@1"] > 95 and row["peer"]
    filtered = dataclasses.replace(corpus, test=make_split(1, 25, filtered=True))
    (other,) = compare(filtered, [name], out=tmp_path, settings=settings, say=lambda _: None)
    assert 0 < other["P@1"] < row["P@1"], "the right label that the filter holds cannot be found"
