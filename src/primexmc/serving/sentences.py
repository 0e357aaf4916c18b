"""What is wrong with a request, in one sentence that repeats nothing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from .refusal import Refusal


async def refused(request: Request, error: Exception) -> Response:
    """A Refusal, or a UserError of the model."""
    if isinstance(error, Refusal):
        return problem(error.status, error.sentence, error.headers)
    return problem(HTTPStatus.BAD_REQUEST, str(error))


async def not_understood(request: Request, error: Exception) -> Response:
    """400 with the place of the first mistake."""
    assert isinstance(error, RequestValidationError)
    return problem(HTTPStatus.BAD_REQUEST, sentence_on(error.errors()))


async def not_answered(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: unknown paths, other methods, bodies that break its parser."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        sentence = "nothing here; /docs tells what there is."
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        sentence = "not by this method; /docs tells what there is."
    else:
        sentence = "the body is not JSON in UTF-8."
    return problem(error.status_code, sentence, error.headers)


async def broken(request: Request, error: Exception) -> Response:
    """An error of ours; its own text might hold a request's."""
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "something went wrong in the server.")


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps({"error": sentence}), status, headers, "application/json")


def sentence_on(errors: Sequence[Mapping[str, Any]]) -> str:
    first = errors[0]
    if first["type"] == "json_invalid":
        return "the body is not JSON in UTF-8."
    if first["type"] in {"missing", "model_attributes_type"} and len(first["loc"]) == 1:
        return "expected a JSON object as the body; /docs shows one for each path."
    if first["type"] == "extra_forbidden":
        return "there is a field that is not known; /docs lists the fields."
    if first["type"] == "too_long" and isinstance(first["input"], str):
        return f"{_place(first['loc'])}at most {first['ctx']['max_length']:,} characters."
    message = str(first["msg"]).removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    return f"{_place(first['loc'])}{message}."


def _place(path: Sequence[str | int]) -> str:
    """`texts[3]: ` for ("body", "texts", 3); names come from our own shapes alone."""
    place = ""
    for part in path[1:]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return f"{place}: " if place else ""
