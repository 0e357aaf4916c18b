"""Texts: millions of strings as one block of bytes and its offsets, a tenth of the memory of a list."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .ragged import ragged_take

_CHUNK = 4096


class Texts(Sequence[str]):
    """A read-only sequence of strings: text i is the UTF-8 in `blob[offsets[i]:offsets[i + 1]]`."""

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Any strings in compact form; what is compact already is returned as it is."""
        if isinstance(texts, Texts):
            return texts
        builder = TextsBuilder()
        for text in texts:
            builder.add(text)
        return builder.finish()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        row = range(len(self))[index]
        return self.blob[self.offsets[row] : self.offsets[row + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _CHUNK):
            bounds = self.offsets[start : start + _CHUNK + 1].tolist()
            block = self.blob[bounds[0] : bounds[-1]].tobytes()
            shift = bounds[0]
            for begin, end in itertools.pairwise(bounds):
                yield block[begin - shift : end - shift].decode()

    def __repr__(self) -> str:
        return f"Texts({len(self)} texts, {int(self.offsets[-1])} bytes)"

    def take(self, rows: NDArray[np.integer[Any]]) -> Texts:
        """The texts of these rows, in this order."""
        return Texts(*ragged_take(self.blob, self.offsets, rows))

    def joined(self, other: Texts) -> Texts:
        """These texts, then the others."""
        blob = np.concatenate([self.blob, other.blob])
        return Texts(blob, np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]))

    @property
    def num_bytes(self) -> NDArray[np.int64]:
        """The length of each text in bytes."""
        return np.diff(self.offsets)


class TextsBuilder:
    """Collects strings one by one."""

    def __init__(self) -> None:
        self._blob = bytearray()
        self._offsets = array("q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def add(self, text: str) -> None:
        # JSON can smuggle in half a surrogate pair, which no UTF-8 can hold: it becomes "?".
        self._blob += text.encode("utf-8", "replace")
        self._offsets.append(len(self._blob))

    def finish(self) -> Texts:
        """The texts; the builder is not to be used again."""
        return Texts(np.frombuffer(self._blob, dtype=np.uint8), np.frombuffer(self._offsets, dtype=np.int64))


def text_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Eight bytes of BLAKE2b for each text: the same on every machine and in every run."""
    digests = (blake2b(text.encode("utf-8", "replace"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8")
