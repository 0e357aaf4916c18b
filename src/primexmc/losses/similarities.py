"""Inner products of which only a few are ever looked at: their gradient costs as little.

Shapes: Q rows, M columns, D dimensions, k picked columns a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True, eq=False)
class Similarities:
    """A matrix, and `pick(index_Qk)`: its entries in these columns, through which gradient flows."""

    matrix_QM: Tensor
    pick: Callable[[Tensor], Tensor]

    @classmethod
    def of_matrix(cls, sim_QM: Tensor) -> Similarities:
        """The gradient of what is picked is a dense matrix, mostly of zeros."""
        return cls(sim_QM, lambda index_Qk: sim_QM.gather(1, index_Qk))

    @classmethod
    def of_vectors(cls, rows_QD: Tensor, columns_MD: Tensor, matrix_QM: Tensor) -> Similarities:
        """With `matrix_QM = rows_QD @ columns_MD.T`: the gradient goes from what is picked to the vectors.

        On the CPU this is ten times as fast as two products with a mostly empty matrix; a GPU prefers the products.
        """
        if rows_QD.device.type != "cpu":
            return cls.of_matrix(matrix_QM)
        matrix_QM = matrix_QM.detach()

        def pick(index_Qk: Tensor) -> Tensor:
            picked: Tensor = _Picked.apply(rows_QD, columns_MD, matrix_QM, index_Qk)  # type: ignore[no-untyped-call]
            return picked

        return cls(matrix_QM, pick)


class _Picked(torch.autograd.Function):
    """`matrix_QM.gather(1, index_Qk)`, whose gradient by the vectors needs the picked pairs alone."""

    @staticmethod
    def forward(ctx: Any, rows_QD: Tensor, columns_MD: Tensor, matrix_QM: Tensor, index_Qk: Tensor) -> Tensor:
        ctx.save_for_backward(rows_QD, columns_MD, index_Qk)
        return matrix_QM.gather(1, index_Qk)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        rows_QD, columns_MD, index_Qk = ctx.saved_tensors
        weight_Qk = gradients[0].contiguous()
        by_rows_QD = embedding_bag(index_Qk, columns_MD, per_sample_weights=weight_Qk, mode="sum")
        by_columns_MD = _by_columns(rows_QD, len(columns_MD), index_Qk, weight_Qk)
        return by_rows_QD, by_columns_MD, None, None


def _by_columns(rows_QD: Tensor, num_columns: int, index_Qk: Tensor, weight_Qk: Tensor) -> Tensor:
    """For each column the weighted sum of the rows that picked it: the picks are sorted by column."""
    column_P = index_Qk.reshape(-1)
    order_P = column_P.argsort(stable=True)
    count_M = torch.bincount(column_P, minlength=num_columns)
    return embedding_bag(
        order_P // index_Qk.shape[1],
        rows_QD,
        count_M.cumsum(0) - count_M,
        per_sample_weights=weight_Qk.reshape(-1)[order_P],
        mode="sum",
    )
