"""The application: routes, what they share, and the gate in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Scope

from .. import __version__
from ..errors import UserError
from . import answers, catalogue, state
from .aside import Aside
from .batcher import Batcher
from .bodies import Problem
from .current import Current
from .gate import Gate, log_line
from .keys import Keys
from .limits import DEFAULT_LIMITS, Limits
from .metrics import Metrics
from .pages import is_page, page_router
from .predictor import answer_items
from .refusal import Refusal
from .sentences import broken, not_answered, not_understood, refused
from .service import Service

OPEN = {"/health", "/ready", "/openapi.json"}  # and the page's files; all else asks for the key
PROBLEMS = {
    400: "not understood",
    401: "the API key is missing or wrong",
    403: "labels cannot be changed from here",
    404: "no such label",
    408: "the body did not arrive in time",
    409: "cannot be done with this model",
    413: "the body is too large",
    415: "the body is not called JSON",
    429: "too many requests are waiting; Retry-After says when to come again",
}
HANDLERS = {
    Refusal: refused,
    UserError: refused,
    RequestValidationError: not_understood,
    HTTPException: not_answered,
    Exception: broken,
}


def make_app(current: Current, keys: Keys | None = None, limits: Limits = DEFAULT_LIMITS) -> tuple[ASGIApp, Service]:
    """What a server runs, and the state behind it."""
    service = make_service(current, keys or Keys(), limits)
    app = FastAPI(
        title="primexmc",
        version=__version__,
        summary="The right few of very many labels for a text.",
        docs_url=None,
        redoc_url=None,  # these two load scripts from elsewhere; /docs is our own
        lifespan=_lifespan,
        responses={status: {"model": Problem, "description": why} for status, why in PROBLEMS.items()},
    )
    app.state.service = service
    for router in (answers.router, catalogue.router, state.router, page_router()):
        app.include_router(router)
    for kind, answer in HANDLERS.items():
        app.add_exception_handler(kind, answer)
    app.openapi = lambda: _as_it_is(FastAPI.openapi(app))  # type: ignore[method-assign]

    def refuse_early(scope: Scope) -> None:
        path = scope["path"]
        if path not in OPEN and not is_page(path):
            service.keys.check(Headers(scope=scope))
        if path == "/predict" and scope["method"] == "POST":
            service.batcher.refuse_if_full()
        elif path == "/explain":
            service.aside.refuse_if_full()

    def watch(method: str, path: str, status: int, seconds: float) -> None:
        service.metrics.request(method, path, status, seconds)
        log_line(method, path, status, seconds)

    return Gate(app, limits, refuse_early, watch), service


def make_service(current: Current, keys: Keys, limits: Limits) -> Service:
    batcher = Batcher(answer_items, limits)
    metrics = Metrics(lambda: batcher.waiting_requests, lambda: len(current.generation.model.labels))
    batcher.batch_sizes, current.report = metrics.batch, metrics.reload
    return Service(current, batcher, Aside(limits.aside_requests), metrics, keys, limits)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The batcher and the look at the model directory live as long as the server."""
    service: Service = app.state.service

    def reload() -> None:
        """Whatever goes wrong has been said by `load`."""
        loading = asyncio.ensure_future(service.aside.run(service.current.load))
        loading.add_done_callback(lambda done: done.cancelled() or done.exception())

    loop = asyncio.get_running_loop()
    service.reload = functools.partial(loop.call_soon_threadsafe, reload)
    tasks = [asyncio.create_task(service.batcher.run()), asyncio.create_task(service.current.watch(reload))]
    yield
    for task in tasks:
        task.cancel()
    service.batcher.close()
    service.aside.close()


def _as_it_is(document: dict[str, Any]) -> dict[str, Any]:
    """The framework announces answers of its own for what is not understood; here that is 400."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    return document
