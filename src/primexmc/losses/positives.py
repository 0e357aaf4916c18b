"""Positives: which columns of a batch are true for which rows.

Shapes: Q rows, M columns, E true pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Positives:
    """The E true pairs of a Q x M similarity matrix, sorted by row, each once. int64, all on one device.

    The pairs of row q are at `start_Q[q] : start_Q[q] + count_Q[q]`. A pair outside `no_negatives` is a negative: those
    are the true pairs and, where there are filter pairs, these as well, which are neither rewarded nor punished.
    """

    rows_E: Tensor
    columns_E: Tensor
    start_Q: Tensor
    count_Q: Tensor
    num_columns: int
    with_filtered: Positives | None = None

    @property
    def no_negatives(self) -> Positives:
        return self if self.with_filtered is None else self.with_filtered

    @classmethod
    def from_csr(
        cls, csr: csr_matrix, device: torch.device | str = "cpu", *, filtered: csr_matrix | None = None
    ) -> Positives:
        """From the non-zeros of a scipy matrix: one pinned copy, so the CPU never waits for the GPU."""
        if filtered is not None:
            return replace(cls.from_csr(csr, device), with_filtered=cls.from_csr(csr + filtered, device))
        csr = _canonical(csr)
        count_Q = np.diff(csr.indptr)
        rows_E = np.repeat(np.arange(csr.shape[0]), count_Q)
        packed = torch.from_numpy(np.concatenate([rows_E, csr.indices, csr.indptr[:-1], count_Q], dtype=np.int64))
        if torch.device(device).type == "cuda":
            packed = packed.pin_memory()
        packed, num_pairs = packed.to(device, non_blocking=True), len(rows_E)
        pairs_2E, spans_2Q = packed[: 2 * num_pairs].view(2, -1), packed[2 * num_pairs :].view(2, -1)
        return cls(pairs_2E[0], pairs_2E[1], spans_2Q[0], spans_2Q[1], csr.shape[1])

    @classmethod
    def from_mask(cls, mask_QM: Tensor) -> Positives:
        """From a bool or 0/1 matrix. The CPU waits for the GPU here (the number of pairs must be known)."""
        if mask_QM.ndim != 2:
            raise ValueError(f"positives are a queries x labels matrix, not one of shape {tuple(mask_QM.shape)}")
        rows_E, columns_E = mask_QM.nonzero(as_tuple=True)
        count_Q = (mask_QM != 0).sum(1)
        return cls(rows_E, columns_E, count_Q.cumsum(0) - count_Q, count_Q, mask_QM.shape[1])

    def transposed(self) -> Positives:
        """The same pairs seen from the columns. No synchronisation."""
        order_E = self.columns_E.argsort(stable=True)
        count_M = self.count_Q.new_zeros(self.num_columns)
        count_M.scatter_add_(0, self.columns_E, torch.ones_like(self.columns_E))
        start_M = count_M.cumsum(0) - count_M
        turned = Positives(self.columns_E[order_E], self.rows_E[order_E], start_M, count_M, len(self.count_Q))
        return turned if self.with_filtered is None else replace(turned, with_filtered=self.with_filtered.transposed())

    def draw(self, generator: torch.Generator | None = None) -> Tensor:
        """One of each row's columns, all alike likely; a row without any gives some column that means nothing.

        The numbers come from the generator's own device, so a CPU generator gives the same draw everywhere.
        """
        return self.columns_E[self.draw_pair(generator)] if len(self.columns_E) else torch.zeros_like(self.count_Q)

    def draw_pair(self, generator: torch.Generator | None = None) -> Tensor:
        """The same as places among the E pairs, of which there must be one."""
        source = self.count_Q.device if generator is None else generator.device
        chance_Q = torch.rand(len(self.count_Q), generator=generator, device=source)
        chance_Q = chance_Q.to(self.count_Q.device, non_blocking=True)
        offset_Q = (chance_Q * self.count_Q).long().minimum(self.count_Q - 1)
        return (self.start_Q + offset_Q).clamp(0, len(self.columns_E) - 1)

    def place_in(self, more: Positives) -> Tensor:
        """Where each pair stands among more pairs, which hold these."""
        return torch.searchsorted(more.flat_E, self.flat_E)

    @cached_property
    def flat_E(self) -> Tensor:
        """Where the pairs lie in the matrix read row by row."""
        return self.rows_E * self.num_columns + self.columns_E

    @cached_property
    def mask_QM(self) -> Tensor:
        """True where positive; made when first asked for."""
        mask_QM = torch.zeros(len(self.count_Q), self.num_columns, dtype=torch.bool, device=self.count_Q.device)
        mask_QM.view(-1).index_fill_(0, self.flat_E, True)
        return mask_QM


def as_positives(positive_QM: Tensor | Positives, sim_QM: Tensor) -> Positives:
    """Whatever the caller has, checked against the similarities it belongs to."""
    positives = positive_QM if isinstance(positive_QM, Positives) else Positives.from_mask(positive_QM)
    shape = (len(positives.count_Q), positives.num_columns)
    if tuple(sim_QM.shape) != shape:
        raise ValueError(
            f"similarities have the shape {tuple(sim_QM.shape)}, the positives {shape}; they must be equal"
        )
    return positives


def _canonical(csr: csr_matrix) -> csr_matrix:
    """Without explicit zeros and duplicates: a copy only where needed."""
    if csr.has_canonical_format and bool(np.all(csr.data)):
        return csr
    csr = csr.copy()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return csr
