"""The weights of text and centroid in the prototypes, against a look at every label; what the model is afterwards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from model.cases_of_labels import NUM_LABELS, made_model
from model.tiny import THINGS, WORDS
from scipy.sparse import csr_matrix
from training.cases import make_corpus, quick, split_of, tensors_of

from primexmc import PrimeModel
from primexmc.data.corpus import Split
from primexmc.data.tokens import RaggedTokens
from primexmc.evaluation.metrics import metrics
from primexmc.model.mixture import NO_MIXTURE, Mixture
from primexmc.model.new_prototypes import label_vectors
from primexmc.training.choose_mixture import CENTROIDS, TEXTS, best_mixture, mix
from primexmc.training.train import train


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def parts_of(model):
    """Prototypes, label texts and centroids, each of length 1 (or 0), in float64."""
    h_LD = label_vectors(model, model.labels.texts)
    return model.prototypes_LD.double().numpy(), *(unit(x.double().numpy()) for x in (h_LD, model.centroids.c_LD))


def held_out(model, seed, filtered=False, size=50):
    """Queries that say words of their labels' texts."""
    rng = np.random.default_rng(seed)
    rows = [sorted(rng.choice(NUM_LABELS, 2, replace=False).tolist()) for _ in range(size)]
    texts = [" ".join([*model.labels.texts[row[0]].split()[:2], rng.choice(WORDS), rng.choice(THINGS)]) for row in rows]
    split = split_of(texts, rows, NUM_LABELS)
    pairs = csr_matrix((rng.random((size, NUM_LABELS)) < 0.2).astype(np.float32))
    return Split(split.texts, split.positives, split.uids, pairs if filtered else None)


def tokens_of(model):
    encoder = model.network.encoder
    rows = [encoder.tokenizer.encode(text, add_special_tokens=False).ids for text in model.labels.texts]
    return RaggedTokens(
        np.array([i for row in rows for i in row], np.int64), np.cumsum([0, *(len(row) for row in rows)])
    )


@pytest.mark.parametrize(("seed", "filtered"), [(0, False), (1, True), (2, False)])
def test_the_best_weights(seed, filtered):
    model = made_model(seed=seed)
    queries, scores = held_out(model, seed, filtered), {}
    z, text, centroid = parts_of(model)
    h = model.encode(queries.texts).astype(np.float64)
    for t, c in itertools.product(TEXTS, CENTROIDS):
        s = h @ (z + t * text + c * centroid).T
        if filtered:
            s[queries.filtered.toarray() > 0] = -np.inf
        scores[t, c] = metrics(np.argsort(-s, axis=1)[:, :5], queries.positives, queries.positives)["nDCG@5"]
    found = best_mixture(model, label_vectors(model, model.labels.texts), queries)
    assert scores[found] == pytest.approx(max(scores.values()), abs=1e-9)
    assert len(set(scores.values())) > 3 and max(scores.values()) > scores[0.0, 0.0], "the weights matter here"
    model.network.label_prototypes = None
    before = model.prototypes_LD
    mix(model, tokens_of(model), queries)
    assert model.mixture == NO_MIXTURE and model.prototypes_LD is before, "its prototypes are its texts"


def test_the_mixed_prototype_is_what_is_searched():
    model = made_model()
    queries = held_out(model, 0)
    z, text, centroid = parts_of(model)
    mix(model, tokens_of(model), queries)
    t, c = model.mixture
    assert t + c > 0
    expected = (z + t * text + c * centroid) / (1 + t + c)
    np.testing.assert_allclose(model.prototypes_LD.numpy(), expected, atol=1e-6)
    h = model.encode(queries.texts)
    ids, scores = model.search(h, 7)
    cosines = [h.astype(np.float64) @ part.T for part in (z, text, centroid)]
    together = (cosines[0] + t * cosines[1] + c * cosines[2]) / (1 + t + c)
    np.testing.assert_allclose(scores, np.take_along_axis(together, ids, axis=1), atol=1e-6)
    np.testing.assert_allclose(scores, -np.sort(-together, axis=1)[:, :7], atol=1e-6)


def test_where_only_the_network_ranks_well_nothing_is_mixed():
    model = made_model()
    queries = held_out(model, 0)
    best = model.search(model.encode(queries.texts), 2)[0]
    queries = split_of(queries.texts, best.tolist(), NUM_LABELS)
    before = model.prototypes_LD.clone()
    mix(model, tokens_of(model), queries)
    assert model.mixture == NO_MIXTURE and torch.equal(model.prototypes_LD, before)


def test_a_label_that_the_classifier_did_not_train_has_its_prototype_there():
    model = made_model()
    w_LD = torch.nn.functional.normalize(torch.randn(model.prototypes_LD.shape), dim=1)
    w_LD[3] = model.prototypes_LD[3]
    model.classifier_LD = w_LD.clone()
    mix(model, tokens_of(model), held_out(model, 0))
    assert model.mixture != NO_MIXTURE
    others = torch.arange(NUM_LABELS) != 3
    assert torch.equal(model.classifier_LD[others], w_LD[others])
    cosine = torch.nn.functional.cosine_similarity(model.classifier_LD[3], model.prototypes_LD[3], dim=0)
    assert float(cosine) == pytest.approx(1, abs=1e-6) and float(model.classifier_LD[3].norm()) == pytest.approx(1)


@pytest.mark.parametrize("refit", [False, True])
def test_training_keeps_the_weights_for_the_finished_model(refit, monkeypatch, tmp_path):
    """They are chosen before the model has seen the held-out queries, and hold afterwards."""
    monkeypatch.setattr("primexmc.training.choose_mixture.best_mixture", lambda *_: Mixture(0.5, 0.25))
    values = quick(training__epochs=2, training__refit=refit)
    plain = train(make_corpus(), "static-cpu", values | {"prototypes.mixed": False}, quiet=True)
    model = train(make_corpus(), "static-cpu", values, out=tmp_path / "m", quiet=True)
    assert plain.mixture == NO_MIXTURE and model.mixture == Mixture(0.5, 0.25)
    h_LD = label_vectors(model, model.labels.texts)
    expected = Mixture(0.5, 0.25).of(plain.prototypes_LD, h_LD, model.centroids.c_LD)
    torch.testing.assert_close(model.prototypes_LD, expected, atol=1e-6, rtol=0)
    again = PrimeModel.load(tmp_path / "m", device="cpu")
    assert again.mixture == model.mixture and torch.equal(again.prototypes_LD, model.prototypes_LD)
    assert "prototypes.safetensors:prototypes" in tensors_of(tmp_path / "m")
