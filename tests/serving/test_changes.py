"""Labels that are added and removed while the server answers."""

from __future__ import annotations

import os

import pytest
from serving.served import serving

from primexmc.model import fair_length
from primexmc.model.model import PrimeModel
from primexmc.serving.current import Current
from primexmc.serving.keys import Keys

NEW = {
    "name": "Garden gnomes",
    "uid": "gnomes",
    "text": "gnome dwarf statue for the lawn",
    "queries": ["a painted gnome"],
}


@pytest.fixture
def served(own_model, monkeypatch):
    # How long a new prototype may be is learned from wrong labels in ten places: not from a shop of twelve labels.
    monkeypatch.setattr(fair_length, "PLACES", 100)
    with serving(Current(own_model, "cpu")) as served:
        yield served


def test_a_new_label_is_predicted_at_once_and_gone_when_removed(served):
    before = served.predict("red kettle", top=12)
    status, answer, _ = served.post("/labels", labels=[NEW])
    assert status == 200 and answer["generation"] == 2 and answer["saved"] is False
    assert [(label["label"], label["uid"], label["id"]) for label in answer["labels"]] == [
        ("Garden gnomes", "gnomes", 12)
    ]
    assert "gnomes" in [label["uid"] for label in served.predict("a painted gnome", top=3)[0]]
    assert served.ask("GET", "/labels?q=gnome")[1]["total"] == 1
    status, why, _ = served.post("/explain", text="a painted gnome", uid="gnomes")
    score = served.predict("a painted gnome", top=1)[0][0]["score"]
    assert status == 200 and why["score"] == pytest.approx(score, abs=1e-5)
    assert sum(voice["share"] for voice in why["voices"]) == pytest.approx(score, abs=1e-4)
    assert served.ask("GET", "/info")[1]["changed"] is True

    status, answer, _ = served.post("/labels/remove", uids=["gnomes"])
    assert status == 200 and answer["labels"][0]["label"] == "Garden gnomes"
    assert served.predict("red kettle", top=12) == before
    assert served.ask("GET", "/labels?q=gnome")[1]["total"] == 0


def test_old_labels_keep_their_rows_and_queries_when_others_go(served, own_model):
    gone, kept = "Bags, luggage", "Home, kitchen & dining"
    assert served.post("/labels/remove", uids=[gone])[0] == 200
    labels = [label["label"] for label in served.ask("GET", "/labels")[1]["labels"]]
    assert gone not in labels and kept in labels and len(labels) == 11
    _, why, _ = served.post("/explain", text="red kettle", uid=kept)
    assert why["label"]["label"] == kept and all(kept in query["labels"] for query in why["nearest_with_label"])
    assert len(PrimeModel.load(own_model, "cpu").labels) == 12, "the directory is as it was"


def test_saved_it_is_there_after_a_restart_and_not_read_twice(served, own_model):
    assert served.post("/labels", labels=[NEW], save=True)[1]["saved"] is True
    assert "gnomes" in list(PrimeModel.load(own_model, "cpu").labels.uids)
    assert served.ask("GET", "/info")[1]["changed"] is False
    assert served.service.generation.number == 2
    assert served.service.current._seen is not None


def test_what_cannot_be_changed_is_one_sentence(served):
    for path, question, sentence in (
        ("/labels", {"labels": [NEW, NEW]}, "twice"),
        ("/labels", {"labels": [{"name": "x", "uid": "Bags, luggage"}]}, "already"),
        ("/labels", {"labels": [{"name": "  "}]}, "labels[0].name"),
        ("/labels", {"labels": []}, "labels: "),
        ("/labels/remove", {"uids": ["nobody"]}, "nobody"),
        (
            "/labels/remove",
            {"uids": [label["uid"] for label in served.ask("GET", "/labels")[1]["labels"]]},
            "all labels",
        ),
    ):
        status, answer, _ = served.post(path, **question)
        assert status == 400 and sentence in answer["error"], answer
    assert served.service.generation.number == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(served, own_model):
    own_model.parent.chmod(0o500)
    try:
        status, answer, _ = served.post("/labels", labels=[NEW], save=True)
    finally:
        own_model.parent.chmod(0o700)
    assert status == 409 and "cannot be written" in answer["error"] and served.service.generation.number == 1


def test_a_full_disk(served, monkeypatch):
    def full(model, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PrimeModel, "save", full)
    status, answer, _ = served.post("/labels", labels=[NEW], save=True)
    assert status == 409 and "No space left on device" in answer["error"] and served.service.generation.number == 1


def test_strangers_change_nothing(own_model):
    with serving(Current(own_model, "cpu")) as served:
        assert served.ask("POST", "/labels", '{"labels": [{"name": "x"}]}', {"Content-Type": "text/plain"})[0] == 415
        assert served.post("/labels", {"Host": "evil.example"}, labels=[NEW])[0] == 403
    with serving(Current(own_model, "cpu"), Keys(None, "0.0.0.0")) as served:
        assert served.post("/labels", labels=[NEW])[0] == served.post("/reload")[0] == 403
        assert served.ask("GET", "/info")[1]["can"]["change_labels"] is False
    with serving(Current(own_model, "cpu"), Keys("a-long-key", "0.0.0.0")) as served:
        assert served.post("/labels", labels=[NEW])[0] == 401
        assert served.post("/labels", {"X-API-Key": "a-long-key"}, labels=[NEW])[0] == 200
