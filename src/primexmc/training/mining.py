"""Mining: each training query's nearest labels that are not its own, by exact search (ANCE).

Shapes: N training queries, L labels, K mined labels a query, D dimensions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..retrieval.exact import ExactIndex
from .finish import prototypes_of
from .phase import Phase
from .state import TrainingState


def mine(phase: Phase, state: TrainingState) -> npt.NDArray[np.int32]:
    """N x K label ids, the nearest first; -1 where a query has no more. The labels are encoded as they now are, the
    queries as they were when they were last in a batch."""
    data = phase.data
    z_LD = prototypes_of(state.network, data, state.centroids, state.device, phase.bf16)
    depth = min(phase.settings.sampling.mined_depth, data.num_labels)
    no_negatives = data.positives if data.filtered is None else data.positives + data.filtered
    ids_NK, _ = ExactIndex(z_LD).search(state.query_bank_ND, depth, no_negatives)
    return ids_NK.astype(np.int32)
