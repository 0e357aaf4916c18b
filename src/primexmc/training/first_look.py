"""What the untrained encoder sees of the data, kept in the cache: a second training of the same starts at once.

Shapes: N training queries, L labels, F free vectors, D dimensions.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from ..atomic import replace_file
from ..data.token_cache import default_cache_dir
from ..data.tokens import RaggedTokens
from ..model.encode import encode_tokens
from ..model.encoder import TextEncoder
from ..model.network import num_free_vectors
from ..sampling.clusters import balanced_clusters
from .phase import Phase

VERSION = "1"
LARGEST_KEPT = 1 << 30  # bytes; above this looking again is no longer the small part of a training


def first_look(phase: Phase, encoder: TextEncoder, device: torch.device) -> tuple[Tensor, Tensor]:
    """The free vector of each label, by clusters of the label texts, and the h_ND of the training queries."""
    data = phase.data
    file = default_cache_dir() / "first-look" / f"{_key(phase, encoder, device)}.safetensors"
    kept = _read(file)
    if kept is not None:
        return kept["free_vector_of_L"].to(device), kept["h_ND"].to(device)
    free_vector_of_L = _free_vector_of_labels(phase, encoder, device)
    h_ND = _normalised(encoder, data.query_tokens, device, phase.bf16)
    if h_ND.nbytes + free_vector_of_L.nbytes <= LARGEST_KEPT:
        _write(file, {"free_vector_of_L": free_vector_of_L.cpu(), "h_ND": h_ND.cpu()})
    return free_vector_of_L, h_ND


def _free_vector_of_labels(phase: Phase, encoder: TextEncoder, device: torch.device) -> Tensor:
    """Labels with similar texts share one."""
    F = num_free_vectors(phase.settings.prototypes, phase.data.num_labels)
    if F == 0:
        return torch.zeros(phase.data.num_labels, dtype=torch.int64, device=device)
    h_LD = _normalised(encoder, phase.data.label_tokens, device, phase.bf16)
    return balanced_clusters(h_LD, F, seed=phase.settings.training.seed)


def _normalised(encoder: TextEncoder, tokens: RaggedTokens, device: torch.device, bf16: bool) -> Tensor:
    h_ND, start = torch.empty(len(tokens), encoder.dim, device=device), 0
    for h_BD in encode_tokens(encoder, tokens, device, bf16=bf16):
        h_ND[start : start + len(h_BD)] = functional.normalize(h_BD, dim=1)
        start += len(h_BD)
    return h_ND


def _key(phase: Phase, encoder: TextEncoder, device: torch.device) -> str:
    """All that the look depends on: tokens, weights, number of clusters, seed, and how numbers are computed."""
    settings, data = phase.settings, phase.data
    F = num_free_vectors(settings.prototypes, data.num_labels)
    digest = blake2b(digest_size=16)
    digest.update(repr((VERSION, torch.__version__, str(device), phase.bf16, F, settings.training.seed)).encode())
    digest.update(repr((settings.encoder.pooling, type(encoder).__name__)).encode())
    for tokens in (data.query_tokens, data.label_tokens):
        digest.update(np.ascontiguousarray(tokens.offsets).data)
        digest.update(np.ascontiguousarray(tokens.ids_T).data)
    for name, tensor in encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _read(file: Path) -> dict[str, Tensor] | None:
    """None where it is missing or damaged: then it is made again."""
    try:
        kept = load_file(file)
        return kept if {"free_vector_of_L", "h_ND"} <= kept.keys() else None
    except (OSError, SafetensorError):
        return None


def _write(file: Path, tensors: dict[str, Tensor]) -> None:
    """A cache that cannot be written is no reason to stop; the tokens' cache has said so already."""
    try:
        with replace_file(file) as new:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, new)
    except (OSError, SafetensorError):
        pass
