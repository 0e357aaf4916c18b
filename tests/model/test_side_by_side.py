"""Blocks of queries in threads of their own give what one query after the other gives, and leave torch as it was."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
import torch
from model.cases_of_labels import NUM_LABELS, made_model
from scipy.sparse import csr_matrix

from primexmc.data.tfidf import TfIdf
from primexmc.fusion.blend import Blend, Weights
from primexmc.fusion.lexical import Lexical
from primexmc.model import side_by_side as module
from primexmc.model.side_by_side import side_by_side


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("num_queries", [0, 1, 32, 33, 200, 1000])
def test_every_row_once_and_in_order(num_queries, threads):
    seen: set[str] = set()

    def answer(rows: slice) -> list[int]:
        if rows != slice(0, 1):
            seen.add(threading.current_thread().name)
            assert threads == 1 or torch.get_num_threads() == 1 or num_queries <= 32
        return list(range(num_queries))[rows]

    assert list(itertools.chain.from_iterable(side_by_side(answer, num_queries))) == list(range(num_queries))
    assert torch.get_num_threads() == threads
    assert num_queries < 200 or threads == 1 or all(name.startswith("primexmc") for name in seen)
    found = []
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert found == [threads]


def test_what_fails_in_a_thread_fails_here(threads):
    def answer(rows: slice) -> None:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        side_by_side(answer, 300)


@pytest.mark.parametrize("mode", ["theta", "all"])
def test_a_model_answers_alike(mode, monkeypatch, threads):
    monkeypatch.setattr(module, "FEWEST", 2)
    rng = np.random.default_rng(0)
    model = made_model()
    tfidf = TfIdf(model.labels.texts)
    weights = rng.standard_normal((len(tfidf.words), NUM_LABELS)) * (rng.random((len(tfidf.words), NUM_LABELS)) < 0.5)
    model.lexical = Lexical(tfidf, csr_matrix(weights.astype(np.float32)), -rng.random(NUM_LABELS, np.float32))
    model.blend, model.mode = Blend({"all": Weights(memory=0.2, lexical=0.1)}, "all"), mode
    texts = [f"{text} {number}" for number, text in enumerate([*model.labels.texts] * 9)]
    filtered = csr_matrix(rng.random((len(texts), NUM_LABELS)) < 0.2)
    ids, scores = model.rank(texts, 3, filtered)
    for row, text in enumerate(texts):
        one_ids, one_scores = model.rank([text], 3, filtered[[row]])
        np.testing.assert_allclose(scores[row], one_scores[0], atol=1e-6)
        np.testing.assert_array_equal(ids[row], one_ids[0])
        assert not set(ids[row].tolist()) & set(filtered[[row]].indices.tolist())
