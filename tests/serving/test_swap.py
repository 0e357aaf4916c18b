"""Another model takes the place of the one that answers, and nobody who asks notices more than other labels."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref

import pytest
from serving.served import serving, wait_for

from primexmc.errors import UserError
from primexmc.model.model import PrimeModel
from primexmc.serving import current as current_module
from primexmc.serving.current import Current
from primexmc.serving.quiet import settle


def renamed(path):
    """The same model with other names."""
    model = PrimeModel.load(path, "cpu")
    model.labels.names[:] = [f"new {name}" for name in model.labels.names]
    return model


def asked_all_the_while(served, work):
    """Answers of four clients that ask without a pause until the work is done."""
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(served.post("/predict", texts=["red kettle", "usb adapter"]))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(answers) > 10)
        work()
        seen = len(answers)
        wait_for(lambda: len(answers) > seen + 10)
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    return answers


def test_a_new_model_is_taken_over_without_dropping_a_request(own_model):
    with serving(Current(own_model, "cpu")) as served:

        def swap():
            renamed(own_model).save(own_model)
            status, answer, _ = served.post("/reload")
            assert (status, answer) == (200, {"generation": 2})

        answers = asked_all_the_while(served, swap)
        assert {status for status, _, _ in answers} == {200}
        old_and_new = set()
        for _, answer, headers in answers:
            is_new = {row["labels"][0]["label"].startswith("new ") for row in answer["results"]}
            assert is_new == {headers["x-generation"] == "2"}, "an answer is of one model alone"
            old_and_new |= is_new
        assert old_and_new == {False, True}
        assert served.predict("kettle")[0][0]["label"].startswith("new ")


def test_a_directory_that_changes_is_read_without_being_told(own_model, monkeypatch):
    monkeypatch.setattr(current_module, "LOOK_EVERY_S", 0.02)
    with serving(Current(own_model, "cpu")) as served:
        renamed(own_model).save(own_model)
        wait_for(lambda: served.service.generation.number == 2)
        assert served.predict("kettle")[0][0]["label"].startswith("new ")
        threading.Event().wait(0.2)
        assert served.service.generation.number == 2, "once"


def test_a_directory_without_a_model_changes_nothing(own_model, monkeypatch, capfd):
    monkeypatch.setattr(current_module, "LOOK_EVERY_S", 0.02)
    with serving(Current(own_model, "cpu")) as served:
        before = served.predict("kettle")
        shutil.rmtree(own_model)
        status, answer, _ = served.post("/reload")
        assert status == 400 and "no such model" in answer["error"]
        assert served.predict("kettle") == before and served.ask("GET", "/ready")[0] == 200
        own_model.mkdir()
        (own_model / "primexmc.json").write_text("{")
        wait_for(lambda: "damaged" in capfd.readouterr().err)
        assert served.predict("kettle") == before and served.service.generation.number == 1
        assert b'primexmc_reloads_total{outcome="failed"}' in served.ask("GET", "/metrics")[1]


def test_a_server_does_not_begin_without_a_model(tmp_path):
    with pytest.raises(UserError, match="no such model"):
        Current(tmp_path / "nowhere")


def test_what_stays_is_passed_over_by_the_collector_and_an_old_model_goes(own_model, monkeypatch):
    """Where the server is alone in its process; some time after the swap, when no request has the old model."""
    monkeypatch.setattr(current_module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(current_module, "SETTLE_AFTER_S", 0.1)
    current = Current(own_model, "cpu", alone=True)
    try:
        settle()
        assert gc.get_freeze_count() > 10_000
        old = weakref.ref(current.generation.model)
        with serving(current) as served:
            served.predict("red kettle")
            current.load()
            assert served.predict("red kettle")
            wait_for(lambda: old() is None and gc.get_freeze_count() > 10_000)
    finally:
        gc.unfreeze()


def test_beside_other_things_in_a_process_nothing_is_frozen(own_model):
    current = Current(own_model, "cpu")
    current.load()
    with serving(current):
        assert gc.get_freeze_count() == 0
