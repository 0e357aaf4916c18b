"""Labels that come and go: what changes, what stays bit for bit, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.cases_of_labels import NUM_LABELS, NUM_QUERIES, F, made_model, state_of
from model.tiny import random_texts
from safetensors.torch import load_file, save_file

from primexmc.errors import UserError
from primexmc.model.fair_length import FAVOUR, PLACES, fair_length
from primexmc.model.model import PrimeModel
from primexmc.model.new_prototypes import Neighbours
from primexmc.training.fit_lexical import fit_lexical

NEW = ["an old church", "a red boat and a dog", "mountain river"]
ASKED = random_texts(3, 40)
FORMS = [{}, {"prototypes.centroid": False}, {"prototypes.free_vector": False}, {"prototypes.enabled": False}]


def unit(vector):
    return vector / np.linalg.norm(vector)


def h_of(model, text):
    """Of one text, token by token."""
    encoder = model.network.encoder
    ids = encoder.tokenizer.encode(text, add_special_tokens=False).ids
    vectors, weights = encoder.vectors_VD.double().numpy(), encoder.weight_V.double().numpy()
    return sum(weights[i] * vectors[i] for i in ids) / max(1, len(ids))


def network_makes(model, h, centroid, free_vector):
    """z of one label; tokens that it does not have are left out before the network sees them."""
    settings = model.settings.prototypes
    yes, no = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    c = None if not settings.centroid else centroid
    v = model.network.free_vectors_FD[free_vector].double().numpy() if settings.free_vector else None
    rows = [torch.from_numpy(np.zeros(16) if x is None else x).float()[None] for x in (h, c, v)]
    return unit(model.network.label_prototypes(*rows, no if c is None else yes, no if v is None else yes)[0].numpy())


def voted(model, h, votes=5):
    """The free vector of the nearest label texts, by loops."""
    scores = [float(unit(h) @ unit(h_of(model, text))) for text in model.labels.texts]
    ballot = {}
    for label in sorted(range(len(scores)), key=lambda label: -scores[label])[:votes]:
        vector = int(model.network.free_vector_of_L[label])
        ballot[vector] = ballot.get(vector, 0) + max(0, scores[label])
    return max(ballot, key=ballot.get)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("examples", [None, [["a dog", "a boat"], [], ["river", "river", "a tree"]]])
def test_a_new_prototype_is_made_of_text_examples_and_a_borrowed_vector(form, examples):
    model = made_model(**form)
    wanted = []
    for text, own in zip(NEW, examples or [[], [], []], strict=True):
        h, queries = h_of(model, text), [unit(h_of(model, query)) for query in dict.fromkeys(own)]
        seen = unit(sum(queries, np.zeros(16)) + 2 * unit(h))
        if form.get("prototypes.enabled", True):
            centroid = sum(queries) / len(queries) if queries else None
            vector = voted(model, h) if form.get("prototypes.free_vector", True) else None
            seen = unit(seen + network_makes(model, h, centroid, vector))
        wanted.append(seen)
    assert model.add_labels(NEW, queries=examples) == NEW
    new = model.prototypes_LD[NUM_LABELS:].double().numpy()
    lengths = np.linalg.norm(new, axis=1)
    assert np.allclose(new / lengths[:, None], wanted, atol=1e-4)
    assert (lengths <= 1 + 1e-6).all() and (lengths > 0.2).all()


@pytest.mark.parametrize("num_examples", [0, 1, 4])
def test_the_length_gives_known_labels_half_as_many_wrong_places_again(num_examples, monkeypatch):
    """Counted by loops over what the function draws."""
    from primexmc.model import fair_length as module

    model = made_model()
    drawn = {}
    monkeypatch.setattr(module, "untrained_prototypes", lambda *given: drawn.setdefault("new", real(*given)))
    real = __import__("primexmc.model.new_prototypes", fromlist=["x"]).untrained_prototypes
    length = fair_length(model, Neighbours(model), num_examples)
    rng = np.random.default_rng(0)
    asked = np.sort(rng.choice(NUM_QUERIES, NUM_QUERIES // 2, replace=False))
    chosen = np.sort(rng.choice(np.arange(NUM_LABELS), 3, replace=False))
    h, z, new = model.memory.h_ND.double().numpy(), model.prototypes_LD.double().numpy(), drawn["new"].double().numpy()

    def wrong_places(prototypes, factor):
        wrong = 0
        for query in asked:
            others = [h[query] @ z[label] for label in range(NUM_LABELS) if label not in chosen]
            last = max(sorted(others)[-PLACES], 1e-6)
            for label, prototype in zip(chosen, prototypes, strict=True):
                wrong += model.memory.positives[query, label] == 0 and factor * (h[query] @ prototype) > last
        return wrong

    goal = round(FAVOUR * wrong_places(z[chosen], 1))
    assert 0 < goal < len(asked) * 3
    assert wrong_places(new, length * (1 - 1e-4)) <= goal
    assert length == 1 or wrong_places(new, length * (1 + 1e-4)) >= goal


@pytest.mark.parametrize("remembers", [True, False])
def test_old_labels_keep_every_bit_and_every_score(remembers):
    model, before = made_model(remembers=remembers), made_model(remembers=remembers)
    old_ids, old_scores = before.rank(ASKED, NUM_LABELS)
    model.add_labels(NEW, ["a", "b", "c"], queries=[["a dog"], ["a dog", "a boat"], []])
    assert torch.equal(model.prototypes_LD[:NUM_LABELS], before.prototypes_LD)
    assert torch.equal(model.centroids.c_LD[:NUM_LABELS], before.centroids.c_LD)
    ids, scores = model.rank(ASKED, NUM_LABELS + 3)
    for row in range(len(ASKED)):
        was_there = ids[row] < NUM_LABELS
        assert ids[row][was_there].tolist() == old_ids[row].tolist()
        assert scores[row][was_there].tolist() == old_scores[row].tolist()
        assert sorted(ids[row][~was_there]) == [NUM_LABELS, NUM_LABELS + 1, NUM_LABELS + 2]


def test_memory_and_counts_follow():
    model = made_model()
    known = model.memory.texts[5]
    model.add_labels(NEW, ["a", "b", "c"], names=["A", "B", "C"], queries=[["a dog", known], ["a dog", "a dog"], []])
    assert model.label_counts_L[NUM_LABELS:].tolist() == [2, 1, 0]
    assert model.centroids.count_L[NUM_LABELS:].tolist() == [2, 1, 0]
    assert model.num_train_queries == NUM_QUERIES + 1 and len(model.memory) == NUM_QUERIES + 1
    pairs = model.memory.positives.toarray()
    assert pairs.shape == (NUM_QUERIES + 1, NUM_LABELS + 3) and model.memory.texts[-1] == "a dog"
    assert pairs[5, NUM_LABELS] == 1 and pairs[-1].nonzero()[0].tolist() == [NUM_LABELS, NUM_LABELS + 1]
    assert np.array_equal(pairs[:NUM_QUERIES, :NUM_LABELS], made_model().memory.positives.toarray())
    assert np.allclose(model.memory.h_ND[-1].numpy(), model.encode(["a dog"])[0], atol=1e-3)
    assert model.predict(["a dog"], 1)[0][0].label in {*model.labels.names} and list(model.labels.names)[-3:] == [
        "A",
        "B",
        "C",
    ]


def test_adding_and_removing_leaves_nothing():
    model = made_model()
    before = state_of(model) | {"queries": None}
    model.add_labels(NEW, queries=[["a dog", model.memory.texts[2]], [], ["b"]])
    model.remove_labels(NEW)
    assert state_of(model) | {"queries": None} == before


@pytest.mark.parametrize("remembers", [True, False])
def test_removing_moves_the_others_up(remembers):
    model, before = made_model(remembers=remembers), made_model(remembers=remembers)
    model.remove_labels(["uid 7", "uid 0"])
    kept = [n for n in range(NUM_LABELS) if n not in (0, 7)]
    assert list(model.labels.uids) == [f"uid {n}" for n in kept] and len(model.label_counts_L) == NUM_LABELS - 2
    assert torch.equal(model.prototypes_LD, before.prototypes_LD[kept])
    assert model.predict(ASKED[1:2], 1)[0][0].uid in set(model.labels.uids)
    if remembers:
        pairs = before.memory.positives.toarray()[:, kept]
        stays = pairs.sum(axis=1) > 0
        assert np.array_equal(model.memory.positives.toarray(), pairs[stays]) and len(model.memory) == stays.sum()
        assert list(model.memory.texts) == [t for t, stay in zip(before.memory.texts, stays, strict=True) if stay]


def test_more_queries_move_the_centroid_exactly():
    """As if all had been there from the beginning; a pair that is remembered does not count again."""
    model, before = made_model(), made_model()
    known = before.memory.texts[int(before.memory.positives[:, 4].nonzero()[0][0])]
    queries = {"uid 4": ["a dog", "red boat", known, "a dog"], "uid 3": ["a castle"]}
    model.update_labels(queries)
    for label, own in ((4, ["a dog", "red boat"]), (3, ["a castle"])):
        old = [before.memory.texts[row] for row in before.memory.positives[:, label].nonzero()[0]]
        h = [unit(h_of(model, text)) for text in [*old, *own]]
        assert np.allclose(model.centroids.c_LD[label].numpy(), sum(h) / len(h), atol=1e-5)
        assert model.centroids.count_L[label] == len(h) == model.label_counts_L[label]
        vector = int(before.network.free_vector_of_L[label])
        z = network_makes(model, h_of(model, model.labels.texts[label]), sum(h) / len(h), vector)
        assert np.allclose(model.prototypes_LD[label].numpy(), z, atol=1e-4), "as training would have made it"
    others = [n for n in range(NUM_LABELS) if n not in (3, 4)]
    assert torch.equal(model.prototypes_LD[others], before.prototypes_LD[others])


def test_an_added_label_that_gets_queries_is_as_if_it_had_come_with_them():
    at_once, later = made_model(), made_model()
    at_once.add_labels(NEW, queries=[["a dog", "b"], [], []])
    later.add_labels(NEW, queries=[["a dog"], [], []])
    later.update_labels({NEW[0]: ["b"]})
    assert torch.allclose(at_once.centroids.c_LD, later.centroids.c_LD, atol=1e-6)
    one, two = at_once.prototypes_LD[NUM_LABELS], later.prototypes_LD[NUM_LABELS]
    assert torch.nn.functional.cosine_similarity(one, two, dim=0) > 0.98  # the others may lend other vectors by now


def test_renaming_a_trained_label_keeps_what_it_learned():
    model, before = made_model(), made_model()
    model.rename_labels({"uid 5": "a red bridge"}, names={"uid 5": "Bridge"})
    assert model.labels.names[5] == "Bridge" and model.labels.texts[5] == "a red bridge"
    centroid = before.centroids.c_LD[5].double().numpy()
    z = network_makes(model, h_of(model, "a red bridge"), centroid, int(before.network.free_vector_of_L[5]))
    assert np.allclose(model.prototypes_LD[5].numpy(), z, atol=1e-4)
    assert list(model.labels.uids) == list(before.labels.uids) and model.trained_L is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("remembers", [True, False])
def test_a_changed_model_is_saved_and_loaded(tmp_path, form, remembers):
    model = made_model(remembers=remembers, **form)
    model.add_labels(NEW, queries=[["a dog"], [], []])
    model.remove_labels([f"uid {n}" for n in range(NUM_LABELS - 2)])  # fewer labels than free vectors
    assert len(model.labels) == 5 < F
    model.save(tmp_path / "m")
    loaded = PrimeModel.load(tmp_path / "m", device="cpu")
    assert state_of(loaded) == state_of(model)
    assert loaded.predict(ASKED[:3], 3) == model.predict(ASKED[:3], 3)
    loaded.add_labels(["a tree"])


def test_models_of_before_have_no_counts_of_their_own(tmp_path):
    model = made_model()
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "prototypes.safetensors"
    tensors = load_file(file)
    assert "trained" not in tensors
    save_file({name: value for name, value in tensors.items() if name != "centroid_counts"}, file)
    loaded = PrimeModel.load(tmp_path / "m", device="cpu")
    assert loaded.centroids.count_L.tolist() == model.label_counts_L.tolist()


REFUSED = {
    "known uid": (lambda m: m.add_labels(["x"], ["uid 4"]), 'a label with the uid "uid 4" already'),
    "uid twice": (lambda m: m.add_labels(["x", "y"], ["n", "n"]), 'the uid "n" is there twice'),
    "text twice without uids": (lambda m: m.add_labels(["x", "x"]), 'the uid "x" is there twice'),
    "too few uids": (lambda m: m.add_labels(["x", "y"], ["n"]), "1 uids for 2 labels"),
    "too few queries": (lambda m: m.add_labels(["x", "y"], queries=[["q"]]), "1 queries for 2 labels"),
    "one text": (lambda m: m.add_labels("x"), "expected a list"),
    "no text": (lambda m: m.add_labels(["x", " "]), r"texts\[1\] is ' '"),
    "not a text": (lambda m: m.add_labels(["x", 3]), r"texts\[1\] is 3"),
    "one query": (lambda m: m.add_labels(["x"], queries=["q"]), 'queries of "x" is the text'),
    "an empty query": (lambda m: m.update_labels({"uid 1": ["", "q"]}), r'queries of "uid 1"\[0\] is \'\''),
    "unknown": (lambda m: m.update_labels({"uid 99": ["q"]}), 'no label with the uid "uid 99".*Did you mean'),
    "remove unknown": (lambda m: m.remove_labels(["uid 1", "nothing"]), 'no label with the uid "nothing"'),
    "remove twice": (lambda m: m.remove_labels(["uid 1", "uid 1"]), 'the uid "uid 1" is named twice'),
    "remove a text": (lambda m: m.remove_labels("uid 1"), "expected a list"),
    "remove all": (lambda m: m.remove_labels(list(m.labels.uids)), "keeps at least one"),
    "rename unknown": (lambda m: m.rename_labels({"x": "y"}), 'no label with the uid "x"'),
    "rename to nothing": (lambda m: m.rename_labels({"uid 1": ""}), r"texts\[0\] is ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_and_nothing_changes(case):
    change, message = REFUSED[case]
    model = made_model()
    before = state_of(model)
    with pytest.raises(UserError, match=message):
        change(model)
    assert state_of(model) == before


def test_an_added_label_is_heard_by_the_words_of_its_text():
    model = made_model()
    model.lexical = fit_lexical(model, model.memory)
    before = model.lexical.weights_WL.toarray()
    model.add_labels(NEW, ["a", "b", "c"])
    model.rename_labels({"b": "a tree", "uid 5": "a red bridge"})
    weights = model.lexical.weights_WL.toarray()
    tfidf = model.lexical.tfidf.vectors([NEW[0], "a tree", NEW[2]]).toarray()
    assert tfidf.any() and np.allclose(weights[:, NUM_LABELS:], tfidf.T, atol=1e-3)
    assert np.array_equal(weights[:, :NUM_LABELS], before), "also of a trained label with another text"
    model.remove_labels(["a", "b", "c"])
    assert np.array_equal(model.lexical.weights_WL.toarray(), before)


def test_queries_that_would_change_nothing_are_refused():
    model = made_model(remembers=False, **{"prototypes.enabled": False})
    with pytest.raises(UserError, match="would change nothing"):
        model.update_labels({"uid 1": ["a dog"]})


def test_nothing_to_do_is_no_error():
    model = made_model()
    before = state_of(model)
    assert model.add_labels([]) == []
    model.remove_labels([])
    model.rename_labels({})
    model.update_labels({})
    assert state_of(model) == before
