"""The page at / and the documentation at /docs: files of this package, nothing from outside."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from importlib import resources

from fastapi import APIRouter, Request, Response

TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
NAMES = {"/": "index.html", "/docs": "docs.html"}


def page_router() -> APIRouter:
    """A route for each file, read once."""
    router = APIRouter(include_in_schema=False)
    folder = resources.files(__package__).joinpath("page")
    paths = NAMES | {f"/page/{file.name}": file.name for file in folder.iterdir() if not file.name.endswith(".html")}
    for path, name in paths.items():
        router.add_api_route(path, _answer(folder.joinpath(name).read_bytes(), TYPES[name.rpartition(".")[2]]))
    return router


def is_page(path: str) -> bool:
    """What anybody may see: it holds nothing of the model."""
    return path in NAMES or path.startswith("/page/")


def _answer(content: bytes, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return file
