"""How a phase begins: the untrained encoder looks at everything once, for free-vector clusters, centroids and bank.

Shapes: N training queries, D dimensions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..model.centroids import Centroids
from ..model.encode import encode_tokens
from ..model.encoder import TextEncoder
from ..model.network import PrimeNetwork
from .first_look import first_look
from .optimiser import make_optimiser
from .phase import Phase
from .state import TrainingState, bank_type


def begin_state(phase: Phase, encoder: TextEncoder, device: torch.device) -> TrainingState:
    """A fresh state. Labels with similar texts share a free vector; a centroid starts as the mean of its queries."""
    state = blank_state(phase, encoder, device)
    free_vector_of_L, h_ND = first_look(phase, encoder, device)
    state.network.free_vector_of_L.copy_(free_vector_of_L)
    state.query_bank_ND.copy_(h_ND)
    state.centroids.set_to_mean([state.query_bank_ND], phase.data.positives)
    return state


def begin_from(phase: Phase, encoder: TextEncoder, learned: dict[str, Tensor], device: torch.device) -> TrainingState:
    """A state that goes on with the parameters of another training; `encoder` has its own already."""
    state = blank_state(phase, encoder, device, len(learned["free_vectors_FD"]))
    state.network.load_state_dict(learned, strict=False)
    start = 0
    for h_BD in encode_tokens(encoder, phase.data.query_tokens, device, bf16=phase.bf16):
        state.query_bank_ND[start : start + len(h_BD)] = functional.normalize(h_BD, dim=1)
        start += len(h_BD)
    state.centroids.set_to_mean([state.query_bank_ND], phase.data.positives)
    return state


def blank_state(
    phase: Phase, encoder: TextEncoder, device: torch.device, num_vectors: int | None = None
) -> TrainingState:
    """The shapes of a state, to be filled by `begin_state`, `begin_from` or a checkpoint."""
    data, settings = phase.data, phase.settings
    free_vector_of_L = torch.zeros(data.num_labels, dtype=torch.int64)
    network = PrimeNetwork(encoder, settings.prototypes, free_vector_of_L, num_vectors).to(device)
    nothing = np.zeros(0, dtype=np.int64)
    return TrainingState(
        network=network,
        optimiser=make_optimiser(network, settings.training),
        centroids=Centroids.empty(data.num_labels, encoder.dim, device),
        query_bank_ND=torch.zeros(
            data.num_queries, encoder.dim, device=device, dtype=bank_type(data.num_queries, encoder.dim)
        ),
        order_N=nothing,
        cuts=nothing,
        cluster_of_N=nothing,
        totals=torch.zeros(3, device=device),
    )
