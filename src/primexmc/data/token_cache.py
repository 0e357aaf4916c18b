"""TokenCache: token ids on disk, found again by a hash of everything that they depend on.

An entry is a directory with ids.bin, offsets.bin and meta.json. It is written beside its place and renamed, so that
two processes may build the same one; what is damaged is built again. Where nothing can be written, ids stay in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .corpus import DataWarning
from .texts import Texts

_VERSION = 1
Arrays = tuple[NDArray[Any], NDArray[np.int64]]


def default_cache_dir() -> Path:
    """`$PRIMEXMC_CACHE` or `~/.cache/primexmc`."""
    chosen = os.environ.get("PRIMEXMC_CACHE")
    return Path(chosen) if chosen else Path(os.path.expanduser("~/.cache/primexmc"))


class TokenCache:
    """Token ids by content."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = (default_cache_dir() if directory is None else Path(directory)) / "tokens"

    def get(
        self, texts: Texts, recipe: Sequence[str], dtype: np.dtype[Any], chunks: Callable[[], Iterator[Arrays]]
    ) -> Arrays:
        """(ids, offsets) from the cache, or made of the chunks of (ids, lengths) and then kept."""
        entry = self._directory / _key(texts, recipe)
        arrays = _read(entry, len(texts), dtype)
        if arrays is None:
            try:
                self._build(entry, chunks(), dtype)
                arrays = _read(entry, len(texts), dtype)
            except OSError as error:
                _say_unwritable(self._directory, error)
        return _in_memory(chunks(), dtype) if arrays is None else arrays

    def _build(self, entry: Path, chunks: Iterator[Arrays], dtype: np.dtype[Any]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=self._directory))
        try:
            _write(building / "entry", chunks, dtype)
            if entry.exists():  # damaged, or another process was quicker: both are safe to replace
                entry.rename(building / "old")
            _publish(building / "entry", entry)
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _key(texts: Texts, recipe: Sequence[str]) -> str:
    digest = blake2b(digest_size=16)
    for part in (str(_VERSION), *recipe):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    digest.update(texts.offsets.astype("<i8", copy=False).data)
    digest.update(np.ascontiguousarray(texts.blob).data)
    return digest.hexdigest()


def _write(directory: Path, chunks: Iterator[Arrays], dtype: np.dtype[Any]) -> None:
    directory.mkdir()
    lengths, checksum = [np.zeros(1, np.int64)], 0
    with (directory / "ids.bin").open("wb") as file:
        for ids, ids_per_text in chunks:
            block = ids.astype(dtype, copy=False).tobytes()
            file.write(block)
            checksum = zlib.crc32(block, checksum)
            lengths.append(ids_per_text)
        _sync(file)
    offsets = np.cumsum(np.concatenate(lengths), dtype="<i8").tobytes()
    meta = {"version": _VERSION, "dtype": dtype.str, "ids_crc": checksum, "offsets_crc": zlib.crc32(offsets)}
    for name, content in (("offsets.bin", offsets), ("meta.json", json.dumps(meta).encode())):
        with (directory / name).open("wb") as file:
            file.write(content)
            _sync(file)


def _publish(built: Path, entry: Path) -> None:
    try:
        built.rename(entry)
    except OSError:
        if not entry.exists():  # else another process has just put the same there
            raise


def _read(entry: Path, num_texts: int, dtype: np.dtype[Any]) -> Arrays | None:
    """The entry's arrays, or None where it is missing or damaged."""
    try:
        meta = json.loads((entry / "meta.json").read_bytes())
        ids, offsets = _mapped(entry / "ids.bin", dtype), _mapped(entry / "offsets.bin", np.dtype("<i8"))
        fits = len(offsets) == num_texts + 1 and offsets[-1] == len(ids) and meta["dtype"] == dtype.str
        sound = zlib.crc32(ids.data) == meta["ids_crc"] and zlib.crc32(offsets.data) == meta["offsets_crc"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (ids, offsets) if fits and sound else None


def _mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


def _in_memory(chunks: Iterator[Arrays], dtype: np.dtype[Any]) -> Arrays:
    ids, lengths = [np.zeros(0, dtype)], [np.zeros(1, np.int64)]
    for ids_of_chunk, ids_per_text in chunks:
        ids.append(ids_of_chunk)
        lengths.append(ids_per_text)
    return np.concatenate(ids), np.cumsum(np.concatenate(lengths))


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _say_unwritable(directory: Path, error: OSError) -> None:
    warnings.warn(
        f"{directory}: cannot keep tokens there ({error.strerror or error}), so they are made anew each time; "
        f"PRIMEXMC_CACHE names another place.",
        DataWarning,
        stacklevel=2,
    )
