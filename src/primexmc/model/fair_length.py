"""How long an untrained prototype may be, so that its label is not in too many places where it is wrong.

Untrained prototypes lie nearer to all queries than trained ones, which have learned what they are not. So known labels
are treated as if they were new, and made so short that they are wrongly among the first places of the remembered
queries half as often again as with their own prototypes.
Shapes: Q remembered queries, S known labels, L labels, D dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from ..retrieval.exact import ExactIndex
from .centroids import Centroids
from .memory import Memory
from .new_prototypes import Neighbours, untrained_prototypes
from .per_label import trained_labels

if TYPE_CHECKING:
    from .model import PrimeModel

IdArray = npt.NDArray[np.int64]
NUM_LABELS, NUM_QUERIES, PLACES = 1000, 2000, 10
FAVOUR = 1.5  # so many wrong places for one of a trained label; more costs the old labels more than the new ones win
UNKNOWN = 0.8  # of the trained ones', where no memory tells; about what is measured with no, one and a few examples


def fair_lengths(model: PrimeModel, neighbours: Neighbours, counts_M: Tensor) -> Tensor:
    """The length of each untrained prototype, by its number of examples."""
    length_M = torch.ones(len(counts_M), device=counts_M.device)
    level_M = (counts_M.double() + 1).log2().floor().long()  # 0, 1 - 2, 3 - 6, 7 - 14, ...
    for level in sorted(set(level_M.tolist())):
        alike_M = level_M == level
        length_M[alike_M] = fair_length(model, neighbours, round(counts_M[alike_M].double().mean().item()))
    return length_M


def fair_length(model: PrimeModel, neighbours: Neighbours, num_examples: int) -> float:
    """For labels with so many examples; never above 1."""
    memory, num_labels = model.memory, len(model.labels)
    if model.network.label_prototypes is None and num_examples == 0:
        return 1.0
    known = trained_labels(model).cpu().numpy().nonzero()[0]
    if memory is None or num_labels <= PLACES or len(memory) < 2 or len(known) == 0:
        return UNKNOWN * _trained_length(model)
    rng = np.random.default_rng(0)
    asked_Q = np.sort(rng.choice(len(memory), min(NUM_QUERIES, len(memory) // 2), replace=False))
    chosen_S = np.sort(rng.choice(known, min(NUM_LABELS, -(-len(known) // 10)), replace=False))
    h_QD = memory.h_ND[torch.from_numpy(asked_Q)].float().to(model.device)
    false_QS = torch.from_numpy(memory.positives[asked_Q][:, chosen_S].toarray() == 0).to(model.device)
    last_Q1 = _last_places(model, h_QD, chosen_S)
    centroids = _centroids(memory, chosen_S, asked_Q, num_examples, rng, model.device)
    at_S = torch.from_numpy(chosen_S).to(model.device)
    h_SD = neighbours.h_LD[at_S]
    new_SD = untrained_prototypes(model, h_SD, centroids, neighbours.free_vectors(h_SD, at_S))
    own_QS, new_QS = h_QD @ model.prototypes_LD[at_S].float().T, h_QD @ new_SD.float().T
    num_wrong = round(FAVOUR * int(((own_QS > last_Q1) & false_QS).sum()))
    needed = (last_Q1 / new_QS)[(new_QS > 0) & false_QS].sort().values  # the length from which each is in its place
    return min(1.0, float(needed[num_wrong])) if num_wrong < len(needed) else 1.0


def _trained_length(model: PrimeModel) -> float:
    """Mixtures (mixture.py) are shorter than 1."""
    lengths_L = model.prototypes_LD[trained_labels(model)].float().norm(dim=1)
    return float(lengths_L.mean()) if len(lengths_L) else 1.0


def _last_places(model: PrimeModel, h_QD: Tensor, without_S: IdArray) -> Tensor:
    """The score of each query's last place among the other labels."""
    everywhere = np.tile(without_S, len(h_QD))
    starts = np.arange(len(h_QD) + 1) * len(without_S)
    filtered = csr_matrix((np.ones(len(everywhere), np.float32), everywhere, starts), (len(h_QD), len(model.labels)))
    _, scores_QK = ExactIndex(model.prototypes_LD).search(h_QD, PLACES, filtered)
    return torch.from_numpy(scores_QK[:, -1:]).to(h_QD.device).clamp(min=1e-6)


def _centroids(
    memory: Memory,
    chosen_S: IdArray,
    asked_Q: IdArray,
    num_examples: int,
    rng: np.random.Generator,
    device: torch.device,
) -> Centroids:
    """Of at most so many remembered queries a label, of which none is asked."""
    rows = np.setdiff1d(np.arange(len(memory)), asked_Q)
    pairs = memory.positives[rows][:, chosen_S].tocoo()
    order = rng.permutation(len(pairs.row))
    order = order[np.argsort(pairs.col[order], kind="stable")]
    columns = pairs.col[order]
    rank = np.arange(len(order)) - np.searchsorted(columns, columns)
    kept = order[rank < num_examples]
    used, at = np.unique(pairs.row[kept], return_inverse=True)
    ones = np.ones(len(kept), dtype=np.float32)
    examples = csr_matrix((ones, (at, pairs.col[kept])), shape=(len(used), len(chosen_S)))
    centroids = Centroids.empty(len(chosen_S), memory.h_ND.shape[1], device)
    centroids.set_to_mean([memory.h_ND[torch.from_numpy(rows[used])].float().to(device)], examples)
    return centroids
