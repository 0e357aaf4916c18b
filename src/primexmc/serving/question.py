"""What /predict is asked, checked: everything that can be wrong with it has its sentence and its status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_BODY_BYTES = 8 << 20
MAX_TEXTS = 1024
MAX_TEXT_LENGTH = 100_000
MAX_TOP = 1000


class Refusal(Exception):
    """An answer that is not 200."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        waits = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        self.status, self.headers = status, {**waits, **(headers or {})}


@dataclass(frozen=True)
class Question:
    texts: list[str]
    top: int = 5

    @classmethod
    def from_json(cls, body: bytes) -> Question:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            raise _bad("the body is not JSON in UTF-8") from None
        if not isinstance(value, dict) or "texts" not in value:
            raise _bad('the body is not an object with "texts"')
        unknown = value.keys() - {"texts", "top"}
        if unknown:
            raise _bad(f"{len(unknown)} fields are unknown")
        return cls(_texts(value["texts"]), _top(value.get("top", cls.top)))


def _texts(texts: Any) -> list[str]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _bad('"texts" is not a list of texts')
    if len(texts) > MAX_TEXTS:
        raise _bad(f'"texts" has {len(texts):,} entries, at most {MAX_TEXTS:,} are answered at once')
    if any(len(text) > MAX_TEXT_LENGTH for text in texts):
        raise _bad(f"a text is longer than {MAX_TEXT_LENGTH:,} characters")
    # JSON can say half of a surrogate pair; that is no text.
    return [text.encode("utf-8", errors="replace").decode() for text in texts]


def _top(top: Any) -> int:
    if type(top) is not int or not 1 <= top <= MAX_TOP:
        raise _bad(f'"top" is not a whole number from 1 to {MAX_TOP:,}')
    return top


def _bad(what: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, f'{what}; expected {{"texts": ["...", ...], "top": 5}}.')
