"""How far a long command is and how fast it goes, on one line of a terminal; nothing where stderr is none."""

from __future__ import annotations

import sys
import time
from types import TracebackType

SECONDS_BETWEEN = 0.2


class Rate:
    """Called with what is done, and how much of it was done before the command began."""

    def __init__(self, unit: str) -> None:
        self.unit, self.started, self.shown_at = unit, time.monotonic(), 0.0
        self.shows = sys.stderr.isatty()

    def __call__(self, done: int, done_before: int = 0) -> None:
        now = time.monotonic()
        if self.shows and now - self.shown_at >= SECONDS_BETWEEN:
            self.shown_at = now
            speed = (done - done_before) / max(now - self.started, 1e-9)
            print(f"\r{done:,} {self.unit}, {speed:,.0f} a second\033[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Rate:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.shows and self.shown_at:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
