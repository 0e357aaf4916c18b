"""The gate: what every request passes on its way in and every answer on its way out.

It bounds a body's size and time, turns whatever goes wrong into one sentence, stops working for those who have gone
away, and writes the log. Only paths of ours are ever repeated there: any other might hold somebody's text.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits
from .refusal import Refusal

SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
READ_AS_JSON = {"/predict", "/explain"}  # whatever the content type: curl -d calls everything a form
OTHER = "(other)"


class GoneAwayError(Exception):
    """The client did not wait for its answer."""


class Watcher(Protocol):
    """Is told of every answer: method, path, status and seconds."""

    def __call__(self, method: str, path: str, status: int, seconds: float) -> None: ...


class Gate:
    """ASGI around the application. `refuse_early` may raise a Refusal before a body is read."""

    def __init__(self, app: ASGIApp, limits: Limits, refuse_early: Callable[[Scope], None], watcher: Watcher) -> None:
        self._app, self._limits = app, limits
        self._refuse_early, self._watcher = refuse_early, watcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, out = time.perf_counter(), _Out(send)
        scope = _for_the_application(scope)
        try:
            self._refuse_early(scope)
            body = await self._read(scope, receive)
            await self._answer(scope, body, receive, out)
        except GoneAwayError:
            out.status = out.status or 499  # as servers call it that had nobody to answer
        except Refusal as refusal:
            await out.error(refusal.status, refusal.sentence, refusal.headers)
        except Exception as error:  # the text of an error might hold a request's
            print(f"primexmc: {type(error).__name__} while answering {_path(scope)}", file=sys.stderr)
            await out.error(HTTPStatus.INTERNAL_SERVER_ERROR, "something went wrong in the server.")
        self._watcher(scope["method"], _path(scope), out.status, time.perf_counter() - started)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body; its length is counted as it comes, whatever the headers say."""
        limit = self._limits.body_bytes
        too_large = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {limit:,} bytes.")
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if len(length) > 15 or int(length) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneAwayError
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time.") from None

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, out: _Out) -> None:
        """The application at work, until it is done, time is up, or nobody waits any more."""
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else {"type": "http.disconnect"}

        work = asyncio.ensure_future(self._app(scope, replay, out.send))
        gone = asyncio.ensure_future(_goodbye(receive))
        try:
            await asyncio.wait({work, gone}, timeout=self._limits.answer_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            elif gone.done():
                raise GoneAwayError
            else:
                sentence = f"no answer within {self._limits.answer_s:g} s; ask for less at once, or again later."
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, sentence, {"Retry-After": "5"})
        finally:
            for task in (work, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task


class _Out:
    """Sends; knows what was sent; adds the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            there = {name for name, _ in message["headers"]}
            added = [(name.encode(), value.encode()) for name, value in SAFE.items() if name.encode() not in there]
            message = {**message, "headers": [*message["headers"], *added]}
        await self._send(message)

    async def error(self, status: HTTPStatus, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        if self.status:  # half an answer is out already
            return
        content = json.dumps({"error": sentence}).encode()
        named = {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
        start: dict[str, Any] = {"type": "http.response.start", "status": int(status)}
        start["headers"] = [(name.lower().encode(), value.encode()) for name, value in named.items()]
        await self.send(start)
        await self.send({"type": "http.response.body", "body": content})


async def _goodbye(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def log_line(method: str, path: str, status: int, seconds: float) -> None:
    """The access log, on stderr."""
    print(f"{method} {path} {status} {1e3 * seconds:.1f} ms", file=sys.stderr, flush=True)


def _for_the_application(scope: Scope) -> Scope:
    """A copy in which HEAD is GET (the server itself leaves the body out) and what is read as JSON is called so."""
    scope = {**scope, "state": dict(scope.get("state", {}))}
    if scope["method"] == "HEAD":
        scope["method"] = "GET"
    elif scope["method"] not in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}:
        scope["method"] = "OTHER"
    if scope["path"] in READ_AS_JSON:
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        scope["headers"] = [*headers, (b"content-type", b"application/json")]
    return scope


def _path(scope: Scope) -> str:
    """The path as the application names it, with `{id}` in place of an id."""
    path: str = getattr(scope.get("route"), "path", OTHER)
    return path
