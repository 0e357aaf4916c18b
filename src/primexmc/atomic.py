"""Directories and files that appear whole or not at all: written aside, flushed to disk, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError


@contextmanager
def replace_directory(path: Path, discard: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields a new directory beside `path` that takes its place at the end.

    Whatever else lay in the old one comes along, except what `discard` names. When the body fails, what was at `path`
    is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{path.name}.new-", dir=path.parent))
    try:
        yield new
        _for_everyone(new)
        _bring_along(path, new, discard)
        new.chmod(0o777 & ~_umask())
        _flush_tree(new)
        _swap(new, path)
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yields the name of a file to write, which takes the place of `path` at the end; a device is written as it is."""
    if path.is_dir():
        raise UserError(f"{path}: a directory; expected the name of a file to write.")
    if path.exists() and not path.is_file():
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.new-", dir=path.parent)
    os.close(descriptor)
    new = Path(name)
    try:
        yield new
        new.chmod(0o666 & ~_umask())
        _flush(new)
        os.replace(new, path)
        _flush(path.parent)
    finally:
        new.unlink(missing_ok=True)


def _swap(new: Path, path: Path) -> None:
    """Rename cannot replace a directory that is not empty: the old one steps aside first."""
    if not path.exists():
        os.replace(new, path)
    else:
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent))
        os.replace(path, old)
        os.replace(new, path)
        shutil.rmtree(old, ignore_errors=True)
    _flush(path.parent)


def _for_everyone(new: Path) -> None:
    """Whoever may read the user's files may read these: some libraries write theirs for the user alone."""
    for entry in new.rglob("*"):
        if entry.is_file():
            entry.chmod(0o666 & ~_umask())


def _bring_along(old: Path, new: Path, discard: tuple[str, ...]) -> None:
    for entry in sorted(old.iterdir()) if old.exists() else ():
        if entry.name in discard or (new / entry.name).exists():
            continue
        if entry.is_dir():
            shutil.copytree(entry, new / entry.name, symlinks=True)
        else:
            shutil.copy2(entry, new / entry.name)


def _flush_tree(directory: Path) -> None:
    for entry in sorted(directory.rglob("*"), reverse=True):
        _flush(entry)
    _flush(directory)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
