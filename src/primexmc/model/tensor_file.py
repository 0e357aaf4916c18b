"""Tensors into a file; a full disk is said in a sentence, for which safetensors has an error of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from ..errors import UserError


def write_tensors(tensors: dict[str, Tensor], file: Path) -> None:
    """Tensors that share memory, which safetensors refuses, are copied."""
    storages = Counter(value.untyped_storage().data_ptr() for value in tensors.values())
    shared = {name for name, value in tensors.items() if storages[value.untyped_storage().data_ptr()] > 1}
    with writing_tensors(file.parent):
        save_file({name: value.clone() if name in shared else value for name, value in tensors.items()}, file)


@contextmanager
def writing_tensors(place: Path) -> Iterator[None]:
    """Around whatever writes safetensors to `place`."""
    try:
        yield
    except SafetensorError as error:
        raise UserError(f"{place}: cannot be written ({error}).") from None
