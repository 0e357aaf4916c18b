"""The hardest negatives of each query: the batch's most similar labels that are not its positives.

Shapes: Q queries, M labels of the batch, k hard negatives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .positives import Positives

CELLS_AT_ONCE = 2**20  # of the copy, on the CPU: fresh memory costs more there than the search


class Negatives(NamedTuple):
    """Columns in no particular order; not `valid` where a row has fewer than k negatives."""

    index_Qk: Tensor
    valid_Qk: Tensor


@torch.no_grad()
def hardest_negatives(sim_QM: Tensor, positives: Positives, num_negatives: int) -> Negatives:
    """The k most similar of each row's negatives.

    What is no negative is little: it is overwritten pair by pair in a copy, which is cheaper than masking the matrix.
    """
    positives = positives.no_negatives
    k = min(num_negatives, sim_QM.shape[1])
    if sim_QM.device.type != "cpu":
        return _search(sim_QM, positives.flat_E, k)
    rows_at_once = max(1, CELLS_AT_ONCE // max(1, sim_QM.shape[1]))
    parts = []
    for row in range(0, len(sim_QM), rows_at_once):
        first, last = torch.searchsorted(positives.rows_E, torch.tensor([row, row + rows_at_once])).tolist()
        flat_E = positives.flat_E[first:last] - row * sim_QM.shape[1]
        parts.append(_search(sim_QM[row : row + rows_at_once], flat_E, k))
    return Negatives(torch.cat([part.index_Qk for part in parts]), torch.cat([part.valid_Qk for part in parts]))


def _search(sim_QM: Tensor, flat_E: Tensor, k: int) -> Negatives:
    masked_QM = sim_QM.detach().clone(memory_format=torch.contiguous_format)
    masked_QM.view(-1).index_fill_(0, flat_E, -torch.inf)
    if masked_QM.device.type == "cpu" and masked_QM.dtype in (torch.float32, torch.float64):  # numpy's is faster here
        first = masked_QM.shape[1] - k
        index_Qk = torch.from_numpy(np.argpartition(masked_QM.numpy(), first, axis=1)[:, first:])
    else:
        index_Qk = masked_QM.topk(k, dim=1, sorted=False).indices
    return Negatives(index_Qk, masked_QM.gather(1, index_Qk) != -torch.inf)
