"""Warnings of ours become one line each; those of other packages are for programmers and stay away."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def as_notes() -> Iterator[None]:
    """While it lasts, `warnings.warn` of this package prints `primexmc: note: ...`. PRIMEXMC_DEBUG=1 shows all."""
    with warnings.catch_warnings():
        if not os.environ.get("PRIMEXMC_DEBUG"):
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show  # type: ignore[assignment]  # it takes what comes after, too
        yield


def _show(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if category.__module__.split(".")[0] == __package__.split(".")[0]:
        print(f"primexmc: note: {message}", file=sys.stderr)
