"""A server in a thread of the test's process, and questions to it over a real socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time

from primexmc.serving.app import make_app
from primexmc.serving.keys import Keys
from primexmc.serving.limits import Limits
from primexmc.serving.serve import Server, listen


class Served:
    """`ask` gives (status, JSON, headers)."""

    def __init__(self, server, port):
        self.server, self.port, self.service = server, port, server.service

    def ask(self, method, path, body=None, headers=None, **options):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers or {}, **options)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(content) if is_json and content else content, response.headers

    def post(self, path, headers=None, **question):
        return self.ask("POST", path, json.dumps(question), {"Content-Type": "application/json", **(headers or {})})

    def predict(self, *texts, **question):
        """The lists of labels for each text."""
        status, answer, _ = self.post("/predict", texts=list(texts), **question)
        assert status == 200, answer
        return [row["labels"] for row in answer["results"]]


@contextlib.contextmanager
def serving(current, keys=None, port=0, **limits):
    listening = listen("127.0.0.1", port)
    server = Server(*make_app(current, keys or Keys(), Limits(**limits)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield Served(server, listening.getsockname()[1])
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


def wait_for(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)
