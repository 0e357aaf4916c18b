"""Checkpoints: safetensors and JSON in a directory that is complete or not there.

`training/checkpoint-<number>/` under the output; the newest one counts, and the older ones are removed after it is
written.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..atomic import replace_directory
from ..errors import UserError
from ..model.tensor_file import write_tensors

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """The tensors and numbers of a state, and a description of the run that it belongs to."""

    tensors: dict[str, Tensor]
    numbers: dict[str, Any]
    run: dict[str, Any]


def save_checkpoint(place: Path, checkpoint: Checkpoint) -> None:
    """Writes a new one, then removes the older."""
    sequence = max((_sequence(old) for old in _found(place)), default=0) + 1
    with replace_directory(place / f"checkpoint-{sequence:06d}") as directory:
        tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}
        write_tensors(tensors, directory / "state.safetensors")
        description = {"format_version": FORMAT_VERSION, "numbers": checkpoint.numbers, "run": checkpoint.run}
        (directory / "state.json").write_text(json.dumps(description, indent=2), encoding="utf-8")
    for old in _found(place)[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(place: Path) -> Checkpoint | None:
    """The newest one, or None where there is none."""
    found = _found(place)
    if not found:
        return None
    try:
        description = json.loads((found[-1] / "state.json").read_text(encoding="utf-8"))
        version = description["format_version"]
        if version != FORMAT_VERSION:
            raise UserError(
                f"{found[-1]}: format version {version}, this primexmc reads {FORMAT_VERSION}; "
                "train again with --overwrite."
            )
        tensors = load_file(found[-1] / "state.safetensors")
        return Checkpoint(tensors, description["numbers"], description["run"])
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"{found[-1]}: the checkpoint is damaged ({error}); train again with --overwrite.") from None


def has_checkpoint(place: Path) -> bool:
    return bool(_found(place))


def _found(place: Path) -> list[Path]:
    return sorted(place.glob("checkpoint-*"), key=_sequence)


def _sequence(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))
