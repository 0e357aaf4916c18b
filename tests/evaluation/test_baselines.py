"""Popularity and tf-idf neighbours against naive loops."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from primexmc.data.corpus import Split
from primexmc.data.tfidf import TfIdf
from primexmc.evaluation import baselines
from primexmc.evaluation.baselines import popularity, tfidf_neighbours

WORDS = [
    "oil",
    "paint",
    "paper",
    "ink",
    "bronze",
    "stone",
    "river",
    "tree",
    "horse",
    "boat",
    "sea",
    "sky",
    "house",
    "man",
    "woman",
    "child",
    "dog",
    "the",
    "on",
    "a",
    "of",
]


def make_split(rng, size, num_labels=15, density=0.2, filtered=False):
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 12))) for _ in range(size)]
    positives = csr_matrix((rng.random((size, num_labels)) < density).astype(np.float32))
    pairs = csr_matrix((rng.random((size, num_labels)) < 0.3).astype(np.float32)) if filtered else None
    return Split(texts, positives, texts, pairs)


def removed(split, row):
    return set() if split.filtered is None else set(split.filtered[[row]].indices.tolist())


def padded(ids, top):
    return (ids + [-1] * top)[:top]


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("top", [1, 4, 15, 40])
def test_popularity(filtered, top):
    rng = np.random.default_rng(top)
    train, queries = make_split(rng, 30, density=0.08), make_split(rng, 12, filtered=filtered)
    counts = [len(train.positives[:, [label]].indices) for label in range(15)]
    best = sorted((label for label in range(15) if counts[label]), key=lambda label: (-counts[label], label))
    expected = [padded([label for label in best if label not in removed(queries, row)], top) for row in range(12)]
    np.testing.assert_array_equal(popularity(train, queries, top), expected)


def slow_vector(text, texts):
    words = re.findall(r"\w\w+", text.lower())
    known = [set(re.findall(r"\w\w+", other.lower())) for other in texts]
    weights = {}
    for word in set(words):
        num_texts = sum(word in other for other in known)
        if num_texts:
            weights[word] = (1 + math.log(words.count(word))) * (1 + math.log((1 + len(texts)) / (1 + num_texts)))
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {word: weight / length for word, weight in weights.items()}


def slow_neighbours(train, queries, num_neighbours):
    """For each query the score of each label that a neighbour has."""
    vectors = [slow_vector(text, train.texts) for text in train.texts]
    for row, text in enumerate(queries.texts):
        query = slow_vector(text, train.texts)
        cosines = [sum(query.get(word, 0) * weight for word, weight in vector.items()) for vector in vectors]
        near = sorted(range(len(vectors)), key=lambda number: -cosines[number])[:num_neighbours]
        scores = {}
        for number in near:
            for label in train.positives[[number]].indices.tolist():
                if cosines[number] > 0 and label not in removed(queries, row):
                    scores[label] = scores.get(label, 0) + cosines[number]
        yield scores


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("num_neighbours", [1, 5, 100])
def test_tfidf_neighbours(filtered, num_neighbours, monkeypatch):
    monkeypatch.setattr(baselines, "SIMILARITIES_PER_BLOCK", 200)  # several blocks
    monkeypatch.setattr(baselines, "FREQUENT_WORDS", 4)  # both products
    rng = np.random.default_rng(num_neighbours)
    train, queries = make_split(rng, 40), make_split(rng, 20, filtered=filtered)
    pred = tfidf_neighbours(train, queries, 6, num_neighbours)
    assert pred.shape == (20, 6)
    for row, scores in enumerate(slow_neighbours(train, queries, num_neighbours)):
        best = sorted(scores.values(), reverse=True)[:6]
        found = [label for label in pred[row].tolist() if label >= 0]
        assert len(found) == len(set(found)) == len(best)
        np.testing.assert_allclose([scores[label] for label in found], best, atol=1e-6)  # up to ties


def test_texts_without_words_have_no_neighbours():
    train = Split(["red boat", ""], csr_matrix(np.eye(2, dtype=np.float32)), ["a", "b"])
    queries = Split(["", "x", "boat"], csr_matrix((3, 2)), ["q", "r", "s"])
    assert tfidf_neighbours(train, queries, 2).tolist() == [[-1, -1], [-1, -1], [0, -1]]
    assert tfidf_neighbours(train, Split([], csr_matrix((0, 2)), []), 2).shape == (0, 2)


def test_tfidf_vectors_have_length_one_and_leave_out_unknown_words():
    tfidf = TfIdf(["River river tree", "tree"])
    vectors = tfidf.vectors(["tree RIVER", "unknown", "unknown tree"]).toarray()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1], rtol=1e-6)
    assert vectors[0, tfidf.id_of["river"]] > vectors[0, tfidf.id_of["tree"]] > 0
