"""How a phase begins: the untrained encoder looks at everything once, for free-vector clusters, centroids and bank.

Shapes: N training queries, L labels, F free vectors, D dimensions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..model.centroids import Centroids
from ..model.encode import encode_tokens
from ..model.encoder import TextEncoder
from ..model.network import PrimeNetwork, num_free_vectors
from ..sampling.clusters import balanced_clusters
from .finish import query_blocks
from .optimiser import make_optimiser
from .phase import Phase
from .state import TrainingState


def begin_state(phase: Phase, encoder: TextEncoder, device: torch.device) -> TrainingState:
    """A fresh state. Labels with similar texts share a free vector; a centroid starts as the mean of its queries."""
    state = blank_state(phase, encoder, device)
    state.network.free_vector_of_L.copy_(_free_vector_of_labels(phase, encoder, device))
    start = 0
    for h_BD in query_blocks(state.network, phase.data, device, phase.bf16):
        state.query_bank_ND[start : start + len(h_BD)] = h_BD
        start += len(h_BD)
    state.centroids.set_to_mean([state.query_bank_ND], phase.data.positives)
    return state


def blank_state(phase: Phase, encoder: TextEncoder, device: torch.device) -> TrainingState:
    """The shapes of a state, to be filled by `begin_state` or by a checkpoint."""
    data, settings = phase.data, phase.settings
    network = PrimeNetwork(encoder, settings.prototypes, torch.zeros(data.num_labels, dtype=torch.int64)).to(device)
    nothing = np.zeros(0, dtype=np.int64)
    return TrainingState(
        network=network,
        optimiser=make_optimiser(network, settings.training),
        centroids=Centroids.empty(data.num_labels, encoder.dim, device),
        query_bank_ND=torch.zeros(data.num_queries, encoder.dim, device=device),
        order_N=nothing,
        cuts=nothing,
        cluster_of_N=nothing,
        totals=torch.zeros(3, device=device),
    )


def _free_vector_of_labels(phase: Phase, encoder: TextEncoder, device: torch.device) -> Tensor:
    F = num_free_vectors(phase.settings.prototypes, phase.data.num_labels)
    if F == 0:
        return torch.zeros(phase.data.num_labels, dtype=torch.int64, device=device)
    blocks = encode_tokens(encoder, phase.data.label_tokens, device, bf16=phase.bf16)
    h_LD = torch.cat([functional.normalize(block, dim=1) for block in blocks])
    return balanced_clusters(h_LD, F, seed=phase.settings.training.seed)
