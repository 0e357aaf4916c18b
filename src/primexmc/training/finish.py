"""One exact pass: every training query and every label through the encoder as it now is, then the prototypes.

Shapes: L labels, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from ..model.centroids import Centroids
from ..model.encode import autocast, encode_tokens
from ..model.network import PrimeNetwork
from .data import TrainingData

See = Callable[[Tensor], None]


def query_blocks(network: PrimeNetwork, data: TrainingData, device: torch.device, bf16: bool) -> Iterator[Tensor]:
    """Normalised embeddings of the training queries, in order."""
    for h_BD in encode_tokens(network.encoder, data.query_tokens, device, bf16=bf16):
        yield functional.normalize(h_BD, dim=1)


@torch.no_grad()
def exact_prototypes(
    network: PrimeNetwork,
    data: TrainingData,
    device: torch.device,
    bf16: bool,
    *,
    kept: Centroids | None = None,
    see: See | None = None,
) -> tuple[Tensor, Centroids]:
    """z_LD, normalised, and the exact centroids that went into it. The network is left as it was found.

    `see` gets every block of query embeddings as it passes by. `kept` are the centroids of training, which take the
    place of exact ones where the settings say so.
    """
    centroids = Centroids.empty(data.num_labels, network.encoder.dim, device)
    if network.label_prototypes is not None and network.settings.centroid:
        centroids.set_to_mean(_seen(query_blocks(network, data, device, bf16), see), data.positives)
    elif see is not None:
        for h_BD in query_blocks(network, data, device, bf16):
            see(h_BD)
    if kept is not None and not network.settings.exact_centroids:
        centroids = kept
    return prototypes_of(network, data, centroids, device, bf16), centroids


@torch.no_grad()
def prototypes_of(
    network: PrimeNetwork, data: TrainingData, centroids: Centroids, device: torch.device, bf16: bool
) -> Tensor:
    """z_LD from given centroids: one pass over the labels."""
    was_training = network.training
    network.eval()
    z_LD = torch.empty(data.num_labels, network.encoder.dim, device=device)  # joining blocks would need it twice
    start = 0
    for h_MD in encode_tokens(network.encoder, data.label_tokens, device, bf16=bf16):
        labels_M = torch.arange(start, start + len(h_MD), device=device)
        with autocast(device, bf16):
            z_LD[start : start + len(h_MD)] = network.prototypes(h_MD, labels_M, centroids)
        start += len(h_MD)
    network.train(was_training)
    return z_LD


def _seen(blocks: Iterable[Tensor], see: See | None) -> Iterator[Tensor]:
    for h_BD in blocks:
        if see is not None:
            see(h_BD)
        yield h_BD
