"""A model's index in its directory: built from its prototypes, taken up when the model is loaded.

Shapes: L labels, D dimensions, N queries.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..config import SearchSettings
from ..retrieval.description import DESCRIPTION, DIRECTORY, SearchWarning, UnusableIndex
from ..retrieval.kept import build_index, load_index, save_index
from ..retrieval.recall import made_up_queries
from .hub import download, is_on_hub

if TYPE_CHECKING:
    from .model import PrimeModel

MOST_QUERIES = 1000


def write_index(model: PrimeModel, path: Path, settings: SearchSettings) -> dict[str, Any]:
    """Builds the index that the settings ask for into the model directory at `path`; gives back its description.

    It is of the vectors that the model's usual mode searches."""
    queries_ND, source = typical_queries(model)
    description = build_index(model.index.z_LD, queries_ND, settings, path / DIRECTORY)
    return {**description, "measured_on": source}


def take_up_index(model: PrimeModel, path: Path) -> None:
    """The index in a model directory becomes the model's; where it cannot be used, a warning says why.

    On a GPU exact search is quicker than any index, and stays.
    """
    path = download(path) if is_on_hub(path) else path
    if model.device.type != "cpu" or not (path / DIRECTORY / DESCRIPTION).exists():
        return
    try:
        model.index = load_index(path / DIRECTORY, model.index.z_LD)
    except UnusableIndex as problem:
        warnings.warn(f"{problem} Until then the search is exact.", SearchWarning, stacklevel=3)


def keep_index(model: PrimeModel, directory: Path) -> None:
    """Into a model's directory that is being made: with the labels that were added or removed since it was built."""
    if model.index.backend != "exact":
        save_index(model.index, directory / DIRECTORY)


def typical_queries(model: PrimeModel) -> tuple[Tensor, str]:
    """Queries of length 1 to measure an index on, and what they are: training queries where the model remembers them,
    else the centroids of labels with the fewest of them, which are nearly single queries; else made up."""
    random = np.random.default_rng(0)
    if model.memory is not None and len(model.memory):
        rows = random.permutation(len(model.memory))[:MOST_QUERIES]
        return functional.normalize(model.memory.h_ND[torch.from_numpy(rows)].float(), dim=1), "training queries"
    has_L = model.centroids.has_L.cpu().numpy()
    if has_L.any():
        order = np.lexsort((random.random(len(has_L)), model.label_counts_L, ~has_L))[: min(has_L.sum(), MOST_QUERIES)]
        c_ND = model.centroids.c_LD[torch.from_numpy(random.permutation(order)).to(model.device)]
        return functional.normalize(c_ND.float().cpu(), dim=1), "centroids of rare labels"
    return made_up_queries(model.prototypes_LD, MOST_QUERIES), "made-up queries"
