"""Who works on what, where several comparisons write into the same directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(place: Path, *, wait: bool) -> Iterator[bool]:
    """Whether `place` is ours while inside. The claim of a process that dies is free at once."""
    file = place.with_name(f"{place.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            file.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
        _remove_empty(file.parent)


def _remove_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:  # somebody has something in it, or was faster
        pass
