"""How much one request, and all of them together, may ask for. Whatever is more is refused at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What `primexmc serve` allows."""

    body_bytes: int = 8 << 20
    texts: int = 1024  # of one request
    text_chars: int = 100_000
    top: int = 1000
    answers: int = 100_000  # texts x top of one request
    body_s: float = 10.0  # for a body to arrive
    answer_s: float = 30.0  # for an answer, with the time spent waiting
    batch_texts: int = 32  # that the model sees at once
    waiting_requests: int = 32  # more of them than fit into a batch only wait longer
    waiting_texts: int = 2048  # of all that wait
    aside_requests: int = 16  # explanations, neighbourhoods and changes, which are not batched


DEFAULT_LIMITS = Limits()
