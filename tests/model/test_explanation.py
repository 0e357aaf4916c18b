"""What prototype, memory and words add to a score, against what the model says without one of them."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from fusion.test_judge import made_judge

from primexmc import Corpus, train
from primexmc.data.texts import Texts
from primexmc.fusion.blend import Blend, Weights
from primexmc.model.explanation import explain

WORDS = ["kettle", "lamp", "chair", "ship", "storm", "tree"]
TEXT, LABEL = "a kettle and a lamp in a storm", 0
ALL = Weights(memory=0.3, lexical=0.2, temperature=0.05)


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    rows = [sorted(rng.choice(6, 2, replace=False).tolist()) for _ in range(160)]
    texts = [f"{WORDS[a]} and {WORDS[b]} number {number % 17}" for number, (a, b) in enumerate(rows)]
    corpus = Corpus.from_lists(texts, [[WORDS[a], WORDS[b]] for a, b in rows], WORDS)
    settings = {"training.epochs": 2, "training.validate_every": 1, "training.device": "cpu"}
    return train(corpus, "static-cpu", settings, quiet=True)


@pytest.fixture
def model(trained):
    model = copy.copy(trained)
    model.blend, model.mode = Blend({"all": ALL}, "all"), "auto"
    return model


def score_of(model, text, weights=ALL):
    """What `rank` says."""
    model = copy.copy(model)
    model.blend = Blend({"all": weights}, "all")
    ids_1K, scores_1K = model.rank([text], len(model.labels))
    return float(scores_1K[0][ids_1K[0] == LABEL][0])


def test_the_voices_make_the_score(model):
    why = explain(model, TEXT, LABEL)
    cosine = score_of(model, TEXT, Weights())
    with_memory = score_of(model, TEXT, dataclasses.replace(ALL, lexical=0.0))
    expected = {"prototype": cosine, "memory": with_memory - cosine, "lexical": score_of(model, TEXT) - with_memory}
    assert dict(why.voices) == pytest.approx(expected, abs=1e-5) and min(map(abs, expected.values())) > 1e-3
    assert why.score == pytest.approx(score_of(model, TEXT), abs=1e-6)
    assert sum(part.share for part in why.parts) == pytest.approx(cosine, abs=1e-4), "the prototype's own share"


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_classifier_has_its_share(model, share):
    generator = torch.Generator().manual_seed(0)
    w_LD = torch.randn(model.prototypes_LD.shape, generator=generator)
    model = dataclasses.replace(model, classifier_LD=torch.nn.functional.normalize(w_LD, dim=1))
    model.blend = Blend({"all": dataclasses.replace(ALL, classifier=share)}, "all")
    why, h_D = explain(model, TEXT, LABEL), model.encode([TEXT])[0]
    both = [float(h_D @ vectors[LABEL].numpy()) for vectors in (model.prototypes_LD, model.classifier_LD)]
    shares = dict(why.voices)
    assert list(shares) == ["prototype", "classifier", "memory", "lexical"]
    assert shares["prototype"] == pytest.approx((1 - share) * both[0], abs=1e-5)
    assert shares["classifier"] == pytest.approx(share * both[1], abs=1e-5)
    assert sum(shares.values()) == pytest.approx(why.score, abs=1e-5)
    assert why.score == pytest.approx(score_of(model, TEXT, model.blend.of("all")), abs=1e-5)
    assert sum(part.share for part in why.parts) == pytest.approx(shares["prototype"], abs=1e-4)


@pytest.mark.parametrize("weights", [ALL, dataclasses.replace(ALL, memory=0.0), Weights()])
def test_the_judge_has_what_the_sum_leaves(model, weights):
    """Also where a voice speaks to it alone."""
    judged = dataclasses.replace(weights, judge=made_judge())
    model.blend = Blend({"all": judged}, "all")
    why, shares = explain(model, TEXT, LABEL), dict(explain(model, TEXT, LABEL).voices)
    assert list(shares) == [
        "prototype",
        *["memory"] * bool(weights.memory),
        *["lexical"] * bool(weights.lexical),
        "judge",
    ]
    assert sum(shares.values()) == pytest.approx(why.score, abs=1e-6)
    assert why.score == pytest.approx(score_of(model, TEXT, judged), abs=1e-5)
    assert shares["judge"] == pytest.approx(score_of(model, TEXT, judged) - score_of(model, TEXT, weights), abs=1e-5)
    assert abs(shares["judge"]) > 1e-3
    assert sum(vote.adds for vote in why.word_votes) + why.bias == pytest.approx(shares.get("lexical", 0), abs=1e-5)
    model.memory = None
    model.labels_changed()
    assert "judge" not in dict(explain(model, TEXT, LABEL).voices), "it does not guess what it cannot hear"
    assert score_of(model, TEXT, judged) == score_of(model, TEXT, weights)


def test_only_voices_that_speak_are_told(model):
    model.mode = "theta"
    why = explain(model, TEXT, LABEL)
    assert [one.voice for one in why.voices] == ["prototype"] and why.voices[0].share == pytest.approx(why.score)
    assert (why.word_votes, why.bias) == ([], 0) and all(query.adds == 0 for query in why.nearest)
    model.mode, model.memory, model.lexical = "auto", None, None
    model.labels_changed()
    assert [one.voice for one in explain(model, TEXT, LABEL).voices] == ["prototype"]


def test_each_word_is_what_the_score_loses_without_it(model):
    words = TEXT.split()
    for at, (word, change) in enumerate(explain(model, TEXT, LABEL).words):
        without = " ".join(words[:at] + words[at + 1 :])
        assert word == words[at]
        assert change == pytest.approx(score_of(model, TEXT) - score_of(model, without), abs=1e-5)


def test_the_words_and_the_bias_make_the_lexical_share(model):
    why = explain(model, TEXT, LABEL)
    assert sum(vote.adds for vote in why.word_votes) + why.bias == pytest.approx(dict(why.voices)["lexical"], abs=1e-5)
    assert why.word_votes[0].word == "kettle" and why.word_votes[0].adds > 0
    votes = dict(why.word_votes)
    assert set(votes) <= {"kettle", "and", "lamp", "storm"}, "words that it knows"


def test_each_query_is_what_the_memory_loses_without_its_label(model):
    """Taken from one query after the other, the label loses all the memory's share."""
    why = explain(model, TEXT, LABEL, num_queries=len(model.memory))
    assert sum(query.adds for query in why.nearest) == pytest.approx(dict(why.voices)["memory"], abs=1e-5)
    assert all((query.adds > 0) <= query.has_label for query in why.nearest)
    row = next(n for n in range(len(model.memory)) if model.memory.texts[n] == why.nearest[0].text)
    positives = model.memory.positives.tolil()
    positives[row, LABEL] = 0
    model.memory = dataclasses.replace(model.memory, positives=positives.tocsr(), texts=Texts.of(model.memory.texts))
    before = score_of(model, TEXT)
    model.labels_changed()
    assert before - score_of(model, TEXT) == pytest.approx(why.nearest[0].adds, abs=1e-5)
