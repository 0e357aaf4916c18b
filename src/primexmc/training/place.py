"""The directory that a training writes to: what may lie there before, and what a failure leaves behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UserError
from ..model.description import DESCRIPTION, TRAINING, refuse_other_directory
from .checkpoint import has_checkpoint

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER = TRAINING
METRICS = "metrics.jsonl"


def check_place(place: Path, *, resume: bool, overwrite: bool) -> None:
    """A trained model may be replaced, once the new one is complete; hours of unfinished training only when told."""
    refuse_other_directory(place)
    if has_checkpoint(place / FOLDER) and not resume and not overwrite:
        raise UserError(
            f"{place}: holds an unfinished training; add --resume to continue it, or --overwrite to start afresh."
        )


def holds_model(place: Path) -> bool:
    return (place / DESCRIPTION).exists()


@contextmanager
def nothing_left_behind(place: Path) -> Iterator[None]:
    """Whatever fails inside before the first checkpoint leaves `place` as it was; from then on it can be resumed."""
    missing = [path for path in (place, *place.parents) if not path.exists()]
    metrics = (place / METRICS).read_bytes() if (place / METRICS).is_file() else None
    with _alone_in(place):
        try:
            yield
        except BaseException:
            if not has_checkpoint(place / FOLDER):
                _tidy(place, missing, metrics)
            raise


@contextmanager
def _alone_in(place: Path) -> Iterator[None]:
    """A second training that would write there is refused. However a process ends, its lock goes with it."""
    if fcntl is None:
        yield
        return
    place.mkdir(parents=True, exist_ok=True)
    directory = os.open(place, os.O_RDONLY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{place}: another training is writing there; name another directory.") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(directory)


def _tidy(place: Path, missing: list[Path], metrics: bytes | None) -> None:
    if not place.is_dir():
        return
    shutil.rmtree(place / FOLDER, ignore_errors=True)
    if metrics is None:
        (place / METRICS).unlink(missing_ok=True)
    else:
        (place / METRICS).write_bytes(metrics)
    for directory in missing:
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
