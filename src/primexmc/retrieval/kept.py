"""Indexes on disk: a directory with index.json, complete or not there, that knows which labels it is of.

Shapes: L labels, D dimensions, N queries.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch

from ..atomic import replace_directory
from ..config import SearchSettings
from ..errors import UserError
from .approximate import ApproximateIndex
from .description import DESCRIPTION, FORMAT_VERSION, SearchWarning, UnusableIndex, read_index_description
from .engine import Engine
from .exact import ExactIndex
from .faiss_engine import FaissEngine
from .index import Index
from .milvus_engine import MilvusEngine

EXACT_BELOW = 200_000  # labels; on a CPU a query takes some milliseconds then
ROWS = 65_536
OLD_FILES = ("milvus.db", "faiss.index", "keys.npy")


def chosen_backend(settings: SearchSettings, num_labels: int) -> str:
    """The backend that the settings name; "auto" searches exactly below 200,000 labels."""
    if settings.backend != "auto":
        return settings.backend
    return "exact" if num_labels < EXACT_BELOW else "faiss"


def build_index(z_LD: torch.Tensor, queries_ND: torch.Tensor, settings: SearchSettings, place: Path) -> dict[str, Any]:
    """Builds the index that the settings ask for, in `place`; gives back its description.

    What was there stays until the new one is complete; one that finds less than `min_recall` is not written.
    """
    backend, replaced = chosen_backend(settings, len(z_LD)), _server_of(place)
    _clear_what_was_killed(place)
    with replace_directory(place, discard=OLD_FILES) as directory:
        if backend == "exact":
            index: Index = ExactIndex(z_LD, precision=settings.precision)
        else:
            collection = f"primexmc_{fingerprint(z_LD)[:16]}"  # a server may hold many models' labels
            engine = _engine(backend, {"kind": settings.faiss, "uri": settings.milvus_uri, "collection": collection})
            aims = {"wanted": settings.recall, "least": settings.min_recall}
            index = ApproximateIndex.build(engine, z_LD, queries_ND, directory, **aims)
        description = save_index(index, directory)
        index.close()
    if replaced is not None and replaced != _server_of(place):
        _forget(replaced)
    return description


def save_index(index: Index, directory: Path) -> dict[str, Any]:
    """Writes an index into a directory that is being made."""
    directory.mkdir(exist_ok=True)
    description = {
        "format": "primexmc index",
        "format_version": FORMAT_VERSION,
        "backend": index.backend,
        "num_labels": len(index),
        "labels": fingerprint(index.z_LD),
        "facts": index.save(directory),
    }
    (directory / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return description


def load_index(place: Path, z_LD: torch.Tensor) -> Index:
    """The index in `place` for these labels, or UnusableIndex with the reason why it must not be used."""
    description = read_index_description(place)
    if description["labels"] != fingerprint(z_LD):
        raise UnusableIndex(f"{place}: made for other labels than the model's; `primexmc index` builds it again.")
    facts = description["facts"]
    try:
        if description["backend"] == "exact":
            return ExactIndex.load(place, z_LD, facts)
        return ApproximateIndex.load(_engine(description["backend"], facts["engine"]), place, z_LD, facts)
    except UserError as error:
        raise UnusableIndex(str(error)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableIndex(f"{place}: damaged ({error}); `primexmc index` builds it again.") from None


def fingerprint(z_LD: torch.Tensor) -> str:
    """Of the labels' vectors: the same for the same numbers in fp32."""
    digest = hashlib.sha256(str(tuple(z_LD.shape)).encode())
    for start in range(0, len(z_LD), ROWS):
        digest.update(z_LD[start : start + ROWS].detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _engine(backend: str, facts: dict[str, Any]) -> Engine:
    if backend == "faiss":
        return FaissEngine(facts["kind"])
    return MilvusEngine(facts["uri"], facts["collection"])


def _server_of(place: Path) -> tuple[str, str] | None:
    """Address and collection, where an index lies on a Milvus server."""
    try:
        engine = read_index_description(place)["facts"]["engine"]
        return (engine["uri"], engine["collection"]) if engine["uri"] else None
    except (UserError, KeyError):
        return None


def _forget(server: tuple[str, str]) -> None:
    """The labels of an index that was replaced need not stay on the server; when it is away they do."""
    try:
        MilvusEngine(*server).drop()
    except UserError as error:
        warnings.warn(f"{error} The collection {server[1]} is no longer needed there.", SearchWarning, stacklevel=3)


def _clear_what_was_killed(place: Path) -> None:
    for left in place.parent.glob(f".{place.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)
