"""A small HTTP server around one model, with the standard library alone.

One request at a time is answered by the model; the others wait; past MAX_WAITING they are turned away.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from .. import __version__
from ..errors import UserError
from ..model.model import PrimeModel
from .question import MAX_BODY_BYTES, Question, Refusal

MAX_WAITING = 64
SOCKET_TIMEOUT_S = 30.0


class ModelServer(ThreadingHTTPServer):
    """A thread a request; closing waits for them."""

    daemon_threads = False
    request_queue_size = MAX_WAITING

    def __init__(self, address: tuple[str, int], model: PrimeModel) -> None:
        self.model = model
        self.turn = threading.Lock()
        self.places = threading.BoundedSemaphore(MAX_WAITING)
        super().__init__(address, _Handler)

    def answer(self, question: Question) -> dict[str, Any]:
        """What /predict gives."""
        if not self.places.acquire(blocking=False):
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are waiting; try again in a second.")
        try:
            with self.turn:
                predictions = self.model.predict(question.texts, question.top)
        finally:
            self.places.release()
        results = [{"labels": [{**one._asdict(), "score": round(one.score, 6)} for one in row]} for row in predictions]
        return {"results": results}

    def info(self) -> dict[str, Any]:
        model = self.model
        num_labels, dim = model.prototypes_LD.shape
        encoder = model.settings.encoder.name
        return {"version": __version__, "labels": num_labels, "dimensions": dim, "encoder": encoder, **model.facts}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    server_version, sys_version = f"primexmc/{__version__}", ""
    timeout = SOCKET_TIMEOUT_S
    paths: ClassVar[dict[str, str]] = {"/predict": "POST", "/health": "GET", "/info": "GET"}

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_GET

    def _answer(self) -> None:
        started, headers = time.perf_counter(), dict[str, str]()
        try:
            status, body = HTTPStatus.OK, self._body()
        except Refusal as refusal:
            status, body, headers = refusal.status, {"error": str(refusal)}, refusal.headers
        except ConnectionError:
            return
        except UserError as error:
            status, body = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:  # the text of an error might hold a request's
            print(f"primexmc: {type(error).__name__} while answering {self._known_path()}", file=sys.stderr)
            status, body = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                {"error": "something went wrong in the server."},
            )
        self._send(status, body, headers)
        took_ms = 1e3 * (time.perf_counter() - started)
        print(
            f"{self.command} {self._known_path()} {status} {took_ms:.1f} ms",
            file=sys.stderr,
        )

    def _body(self) -> dict[str, Any]:
        path = self._known_path()
        if path not in self.paths:
            raise Refusal(HTTPStatus.NOT_FOUND, f"nothing here; there are {', '.join(self.paths)}.")
        if self.command != self.paths[path]:
            allowed = {"Allow": self.paths[path]}
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked by {self.paths[path]}.", allowed)
        if path == "/predict":
            return self.server.answer(Question.from_json(self._read()))
        return self.server.info() if path == "/info" else {"status": "ok"}

    def _read(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length.")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY_BYTES:,} bytes.")
        try:
            body = self.rfile.read(int(length))
        except TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time.") from None
        if len(body) < int(length):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body is shorter than its Content-Length.")
        return body

    def _known_path(self) -> str:
        """Only paths of ours are ever repeated, in logs or answers: any other might hold somebody's text."""
        path = self.path.partition("?")[0]
        return path if path in self.paths else "(other)"

    def _send(self, status: HTTPStatus, body: dict[str, Any], headers: dict[str, str]) -> None:
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", errors="backslashreplace")
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server finds wrong before a method is called: a broken request line, an unknown method."""
        status = HTTPStatus(code)
        self.command = self.command or ""
        self._send(status, {"error": f"{status.phrase.lower()}."}, {})

    def log_message(self, format: str, *args: Any) -> None:
        """The server's own lines repeat what was asked; ours in `_answer` do not."""


def make_server(model: PrimeModel, host: str = "127.0.0.1", port: int = 8000) -> ModelServer:
    """Listens from now on; answers when it is served."""
    return ModelServer((host, port), model)


def serve_until_stopped(server: ModelServer) -> None:
    """Until Ctrl-C or SIGTERM; the requests that are running get their answers. A second signal ends at once."""

    def stop(*_: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        threading.Thread(target=server.shutdown).start()  # it waits for serve_forever, which runs in this thread

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever(poll_interval=0.1)
    finally:
        server.server_close()
        for number, handler in previous.items():
            signal.signal(number, handler)
