"""An answer that is not 200: a status and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus


class Refusal(Exception):
    """Raised anywhere below the gate, which turns it into `{"error": "..."}`."""

    def __init__(self, status: HTTPStatus, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


def too_many(seconds: float) -> Refusal:
    """429: everything that may wait is waiting already."""
    wait = str(max(1, min(30, round(seconds))))
    sentence = f"too many requests are waiting; try again in {wait} s."
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, sentence, {"Retry-After": wait})


def not_found(sentence: str) -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, sentence)
