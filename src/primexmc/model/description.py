"""primexmc.json: what makes a directory a model, read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UserError

FORMAT_VERSION = 1
DESCRIPTION = "primexmc.json"
TRAINING = "training"  # the folder of an unfinished one: it goes when the model is there
CLASSIFIER = "classifier.safetensors"  # where the model has one
KEYS = ("num_labels", "dim", "num_train_queries", "settings", "facts")


def read_description(path: Path) -> dict[str, Any]:
    """What primexmc.json says, or a sentence on why this is not a model."""
    file = path / DESCRIPTION
    if not path.exists():
        raise UserError(f"{path}: no such model; expected a directory written by `primexmc train ... --out {path}`.")
    if not file.is_file():
        hint = (
            " It holds an unfinished training: `primexmc train ... --resume` continues it."
            if (path / TRAINING).exists()
            else ""
        )
        raise UserError(
            f"{path}: not a model directory (no {DESCRIPTION} in it); expected one written by `primexmc train`.{hint}"
        )
    try:
        description: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        version = description["format_version"]
        missing = [key for key in KEYS if key not in description]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file}: damaged, not the JSON of a model; train or copy the model again.") from None
    if version != FORMAT_VERSION:
        raise UserError(
            f"{file}: format version {version}, but this primexmc reads version {FORMAT_VERSION}; "
            "install the version that wrote it."
        )
    if missing:
        raise UserError(f"{file}: damaged, it has no {missing[0]}; train or copy the model again.")
    return description


def refuse_other_directory(path: Path) -> None:
    """A model may replace a model or fill an empty place, never somebody's other files."""
    if not path.exists():
        return
    if not path.is_dir():
        raise UserError(f"{path}: a file is in the way; name a new directory for the model.")
    foreign = _no_checkpoint(path / TRAINING)
    if foreign is not None:
        raise UserError(f"{foreign}: not of a training, and would be lost; name another directory for the model.")
    entries = {entry.name for entry in path.iterdir()}
    if entries and not entries & {DESCRIPTION, TRAINING}:
        raise UserError(f"{path}: holds other files and no model; name a new or empty directory for the model.")


def _no_checkpoint(training: Path) -> Path | None:
    """What lies where the checkpoints go and is none, nor one that was being written."""
    if not training.is_dir():
        return training if training.exists() else None
    return next((entry for entry in training.iterdir() if not entry.name.lstrip(".").startswith("checkpoint-")), None)
