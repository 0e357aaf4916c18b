"""labels.jsonl: a model's labels, a line each; read without torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.corpus import Labels
from ..errors import UserError

LABELS = "labels.jsonl"
IdArray = npt.NDArray[np.int64]


def write_labels(labels: Labels, label_counts_L: IdArray, directory: Path) -> None:
    columns = zip(labels.uids, labels.names, labels.texts, label_counts_L.tolist(), strict=True)
    with (directory / LABELS).open("w", encoding="utf-8") as lines:
        for uid, name, text, count in columns:
            row = {"uid": uid, "name": name, "text": text, "train_queries": count}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_labels(directory: Path) -> tuple[Labels, IdArray]:
    """The labels, and how many training queries each has."""
    file = directory / LABELS
    try:
        rows = list(_rows(file))
        labels = Labels([row["uid"] for row in rows], [row["name"] for row in rows], [row["text"] for row in rows])
        return labels, np.array([row["train_queries"] for row in rows], dtype=np.int64)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: missing or damaged ({error}); train or copy the model again.") from None


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)
