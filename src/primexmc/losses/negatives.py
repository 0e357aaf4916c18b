"""The hardest negatives of each query: the batch's most similar labels that are not its positives."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .positives import Positives


class Negatives(NamedTuple):
    """Columns in no particular order; not `valid` where a row has fewer than k negatives."""

    index_Qk: Tensor
    valid_Qk: Tensor


@torch.no_grad()
def hardest_negatives(sim_QM: Tensor, positives: Positives, num_negatives: int) -> Negatives:
    """The k most similar of each row's non-positives.

    The positives are few: they are overwritten one by one in a copy, which is cheaper than masking the matrix.
    """
    masked_QM = sim_QM.detach().clone(memory_format=torch.contiguous_format)
    masked_QM.view(-1).index_fill_(0, positives.flat_E, -torch.inf)
    k = min(num_negatives, sim_QM.shape[1])
    value_Qk, index_Qk = masked_QM.topk(k, dim=1, sorted=False)
    return Negatives(index_Qk, value_Qk != -torch.inf)
