"""Corpus: texts, labels and who belongs to whom, however they lay on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from ..config import DataSettings
from ..errors import UserError, did_you_mean
from .texts import Texts

_SPLITS = {"trn": "train", "train": "train", "val": "val", "tst": "test", "test": "test"}
_DEFAULTS = DataSettings()


class DataWarning(UserWarning):
    """Something in the data is odd but legal; said once a file."""


@dataclass(frozen=True)
class Split:
    """The queries of one part of the data: `texts[i]` has the labels of row i of `positives`."""

    texts: Sequence[str]
    positives: csr_matrix  # queries x labels, float32 relevance, sorted indices, no explicit zeros
    uids: Sequence[str]
    filtered: csr_matrix | None = None  # pairs that are neither rewarded nor punished

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: NDArray[np.integer[Any]]) -> Split:
        """These queries, in this order, with their labels and filter pairs."""
        filtered = None if self.filtered is None else self.filtered[rows]
        return Split(Texts.of(self.texts).take(rows), self.positives[rows], Texts.of(self.uids).take(rows), filtered)

    def joined(self, other: Split) -> Split:
        """These queries, then the others."""
        return Split(
            Texts.of(self.texts).joined(Texts.of(other.texts)),
            vstack([self.positives, other.positives], format="csr"),
            Texts.of(self.uids).joined(Texts.of(other.uids)),
            _joined_filters(self, other),
        )


@dataclass(frozen=True)
class Labels:
    """What is known of each label. `uids` are unique, `names` need not be; `texts` is what the encoder reads."""

    uids: Sequence[str]
    names: Sequence[str]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.uids)


@dataclass(frozen=True)
class Corpus:
    """Labels and up to three splits of queries."""

    name: str
    labels: Labels
    train: Split | None = None
    val: Split | None = None
    test: Split | None = None

    @classmethod
    def load(
        cls,
        source: str | Path | Any,
        *,
        settings: DataSettings = _DEFAULTS,
        single_file_as: Literal["train", "test"] = "train",
    ) -> Corpus:
        """Reads a directory or file in any known layout, or a Hugging Face dataset; docs/data.md lists the layouts."""
        from .load import load  # the readers build on the shapes above

        return load(source, settings, single_file_as)

    @classmethod
    def from_lists(
        cls,
        texts: Sequence[str],
        labels: Sequence[Iterable[str] | Iterable[int]],
        label_texts: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Corpus:
        """A train split from Python lists: per text its label names, or indices into the list `label_texts`."""
        from .lists import from_lists

        return from_lists(texts, labels, label_texts)

    def split(self, name: str) -> Split:
        """The split called "trn" or "train", "val", "tst" or "test"."""
        if name not in _SPLITS:
            raise UserError(f'"{name}" is no split; expected train, val or test.{did_you_mean(name, _SPLITS)}')
        split: Split | None = getattr(self, _SPLITS[name])
        if split is None:
            there = [known for known in ("train", "val", "test") if getattr(self, known) is not None]
            raise UserError(f"{self.name} has no {_SPLITS[name]} split, only {' and '.join(there) or 'labels'}.")
        return split

    def with_validation(self, settings: DataSettings) -> Corpus:
        """Train divided into train + val by hash of uid; unchanged when there is a val split (see validation.py)."""
        if self.val is not None or self.train is None:
            return self
        from .validation import held_out

        val_Q = held_out(self.train.uids, self.train.positives, settings.validation_fraction, settings.validation_max)
        if not val_Q.any():
            return self
        train, val = self.train.take(np.flatnonzero(~val_Q)), self.train.take(np.flatnonzero(val_Q))
        return dataclasses.replace(self, train=train, val=val)

    def without_validation(self) -> Corpus:
        """Train and val put together as train, for a last training on all of it."""
        if self.val is None or self.train is None:
            return self
        return dataclasses.replace(self, train=self.train.joined(self.val), val=None)


def _joined_filters(one: Split, other: Split) -> csr_matrix | None:
    if one.filtered is None and other.filtered is None:
        return None
    parts = [csr_matrix(split.positives.shape) if split.filtered is None else split.filtered for split in (one, other)]
    joined: csr_matrix = vstack(parts, format="csr", dtype=np.float32)
    return joined
