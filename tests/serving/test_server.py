"""The server over a real socket, with a model that answers at once, or when it is told."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from primexmc.config import Settings
from primexmc.model.model import Prediction
from primexmc.serving import server as server_module
from primexmc.serving.question import MAX_BODY_BYTES, MAX_TEXT_LENGTH, MAX_TEXTS, MAX_TOP
from primexmc.serving.server import make_server


class Model:
    """Answers with the text itself; waits on `go`, breaks on "break"."""

    prototypes_LD = np.zeros((7, 3))
    settings, facts = Settings(), {"corpus": "made up"}

    def __init__(self):
        self.go, self.at_once, self.most_at_once = threading.Event(), 0, 0
        self.go.set()

    def predict(self, texts, top):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.go.wait(10)
        self.at_once -= 1
        if "break" in texts:
            raise RuntimeError(f"no answer to {texts}")
        return [[Prediction(text, f"uid {rank}", rank, 0.25) for rank in range(top)] for text in texts]


@pytest.fixture
def served():
    model = Model()
    server = make_server(model, port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield SimpleNamespace(model=model, server=server, port=server.server_address[1])
    model.go.set()
    server.shutdown()
    server.server_close()
    thread.join()


def ask(served, method, path, body=None, headers=None):
    """(status, JSON, headers)."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    return response.status, json.loads(content) if content else None, response.headers


def predict(served, **question):
    return ask(served, "POST", "/predict", json.dumps(question))


def test_predict(served):
    status, answer, _ = predict(served, texts=["thé", "b"], top=2)
    assert status == 200
    labels = [{"label": "thé", "uid": f"uid {rank}", "id": rank, "score": 0.25} for rank in range(2)]
    assert answer["results"][0] == {"labels": labels} and answer["results"][1]["labels"][0]["label"] == "b"
    assert [len(row["labels"]) for row in predict(served, texts=["x"])[1]["results"]] == [5]
    assert predict(served, texts=[])[1] == {"results": []}
    status, answer, _ = ask(served, "POST", "/predict", b'{"texts": ["\\ud800"]}')
    assert (status, answer["results"][0]["labels"][0]["label"]) == (200, "?")


def test_health_and_info(served):
    assert ask(served, "GET", "/health")[:2] == (200, {"status": "ok"})
    status, info, _ = ask(served, "GET", "/info?x=1")
    assert status == 200
    assert (info["labels"], info["dimensions"], info["encoder"], info["corpus"]) == (7, 3, "static", "made up")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ('{"top": 3}', 'not an object with "texts"'),
        ('{"texts": "abc"}', "not a list of texts"),
        ('{"texts": ["a", 1]}', "not a list of texts"),
        ('{"texts": ["a"], "top": 0}', '"top"'),
        ('{"texts": ["a"], "top": true}', '"top"'),
        ('{"texts": ["a"], "top": 2.5}', '"top"'),
        ('{"texts": ["a"], "tpo": 3}', "1 fields are unknown"),
        (json.dumps({"texts": ["a"], "top": MAX_TOP + 1}), '"top"'),
        (json.dumps({"texts": ["a"] * (MAX_TEXTS + 1)}), "entries"),
        (json.dumps({"texts": ["a" * (MAX_TEXT_LENGTH + 1)]}), "longer"),
    ],
)
def test_bad_questions(served, body, sentence):
    status, answer, _ = ask(served, "POST", "/predict", body)
    assert status == 400 and sentence in answer["error"]


def test_other_paths_and_methods(served):
    assert ask(served, "GET", "/secret")[0] == 404
    status, answer, headers = ask(served, "GET", "/predict")
    assert status == 405 and headers["Allow"] == "POST" and "error" in answer
    assert ask(served, "DELETE", "/health")[0] == 405
    assert ask(served, "BREW", "/predict")[0] == 501


def test_the_size_of_a_body(served):
    assert ask(served, "POST", "/predict", headers={"Content-Length": str(MAX_BODY_BYTES + 1)})[0] == 413
    assert ask(served, "POST", "/predict", headers={"Content-Length": "9" * 5000})[0] == 413
    assert ask(served, "POST", "/predict", headers={"Content-Length": "-1"})[0] == 411
    assert ask(served, "POST", "/predict", iter([b"{}"]), {"Transfer-Encoding": "chunked"})[0] == 411


def test_a_body_that_does_not_come(served, monkeypatch):
    monkeypatch.setattr(server_module._Handler, "timeout", 0.1)
    assert ask(served, "POST", "/predict", b"{", headers={"Content-Length": "100"})[0] == 408
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
        client.sendall(b"POST /predict HTTP/1.0\r\nContent-Length: 100\r\n\r\n{")
        client.shutdown(socket.SHUT_WR)
        assert b" 400 " in client.recv(1000)


def test_nonsense_instead_of_http(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert b"error" in client.recv(1000)
    assert ask(served, "GET", "/health")[0] == 200


def test_an_error_of_ours_is_a_500_that_repeats_nothing(served, capsys):
    status, answer, _ = predict(served, texts=["break"])
    assert (status, answer) == (500, {"error": "something went wrong in the server."})
    assert "break" not in capsys.readouterr().err
    assert predict(served, texts=["fine"])[0] == 200


def test_no_text_in_the_log(served, capsys):
    predict(served, texts=["secret"])
    ask(served, "GET", "/secret")
    ask(served, "GET", "/health?secret")
    ask(served, "SECRET", "/health")
    ask(served, "POST", "/predict", b'{"secret"')
    log, deadline = "", time.monotonic() + 5
    while log.count("\n") < 4 and time.monotonic() < deadline:  # a line is written after its answer
        log += capsys.readouterr().err
    assert "POST /predict 200" in log and "GET (other) 404" in log and "GET /health 200" in log
    assert "secret" not in log.lower()


def test_one_at_a_time_and_no_more_than_can_wait(served, monkeypatch):
    served.server.places = threading.BoundedSemaphore(3)
    served.model.go.clear()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(predict(served, texts=["x"]))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(0.3)
    refused = [answer for answer in answers if answer[0] == 503]
    assert len(answers) == len(refused) == 2, "what does not fit is refused at once"
    assert all(headers["Retry-After"] == "1" for _, _, headers in refused)
    served.model.go.set()
    for thread in threads:
        thread.join()
    assert sorted(answer[0] for answer in answers) == [200, 200, 200, 503, 503]
    assert served.model.most_at_once == 1


def test_closing_waits_for_running_requests():
    model = Model()
    server = make_server(model, port=0)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    served = SimpleNamespace(port=server.server_address[1])
    model.go.clear()
    answers = []
    client = threading.Thread(target=lambda: answers.append(predict(served, texts=["x"])))
    client.start()
    while not model.at_once:
        client.join(0.01)
    server.shutdown()
    closing = threading.Thread(target=server.server_close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive() and not answers
    model.go.set()
    for thread in (client, closing, serving):
        thread.join(5)
    assert answers[0][0] == 200
