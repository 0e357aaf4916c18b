"""A generation: one model as it is served, with all that is derived from it. It never changes; it is replaced."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..data.frequency import BUCKETS, frequency_buckets
from ..model.model import PrimeModel
from .label_names import LabelNames

NUM_EXAMPLES = 6
EXAMPLE_CHARS = (20, 140)


@dataclass(eq=False)
class Generation:
    """`number` counts the models of one server; `changed` says that labels differ from those on disk."""

    model: PrimeModel
    path: Path
    number: int = 1
    changed: bool = False
    loaded_at: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.bucket_L: npt.NDArray[np.int8] = frequency_buckets(self.model.label_counts_L)
        self.names = LabelNames(self.model.labels.names, self.model.label_counts_L)
        self.model.rank(["the first text takes longest"], 1)

    def row_of(self, uid: str) -> int | None:
        return self._row_of_uid.get(uid)

    @cached_property
    def _row_of_uid(self) -> dict[str, int]:
        return {uid: row for row, uid in enumerate(self.model.labels.uids)}

    def label(self, row: int) -> dict[str, Any]:
        """What every list of labels says of one."""
        labels = self.model.labels
        return {
            "label": labels.names[row],
            "uid": labels.uids[row],
            "id": row,
            "train_queries": int(self.model.label_counts_L[row]),
            "bucket": BUCKETS[self.bucket_L[row]],
        }

    def label_with_text(self, row: int) -> dict[str, Any]:
        return self.label(row) | {"text": self.model.labels.texts[row]}

    def info(self) -> dict[str, Any]:
        """What is worth knowing of it at a glance."""
        model = self.model
        num_labels, dim = model.prototypes_LD.shape
        counts = np.bincount(self.bucket_L, minlength=len(BUCKETS)).tolist()
        return {
            "version": __version__,
            "model": self.path.resolve().name,
            "generation": self.number,
            "changed": self.changed,
            "loaded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.loaded_at)),
            "labels": num_labels,
            "dimensions": dim,
            "encoder": Path(model.settings.encoder.name).name,
            "train_queries": model.num_train_queries,
            "buckets": dict(zip(BUCKETS, counts, strict=True)),
            "facts": model.facts,
        }

    def learning(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, where the directory has it; a row that is damaged is left out."""
        try:
            lines = (self.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return []
        rows = []
        for line in lines:
            try:
                row = json.loads(line, parse_constant=lambda _: None)
            except ValueError:
                continue
            if isinstance(row, dict):
                rows.append(row)
        return rows

    def examples(self) -> list[str]:
        """A few training texts of a handy length, taken at even distances."""
        memory = self.model.memory
        if memory is None or len(memory) == 0:
            return []
        shortest, longest = EXAMPLE_CHARS
        rows = np.linspace(0, len(memory) - 1, min(len(memory), 20 * NUM_EXAMPLES)).astype(int).tolist()
        texts = [memory.texts[row] for row in rows]
        handy = [text for text in texts if shortest <= len(text) <= longest] or [text[:longest] for text in texts]
        return [handy[at] for at in np.linspace(0, len(handy) - 1, min(NUM_EXAMPLES, len(handy))).astype(int)]
