"""Log-sum-exp over each row's negatives: of a matrix, or part by part of one that is never kept.

Shapes: Q rows, M columns, C columns of a part, E true pairs, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .positives import Positives
from .terms import at_least_float32

CELLS_AT_ONCE = {"cpu": 2**24, "cuda": 2**27}  # 64 MB and 512 MB of float32
CELLS_IN_CACHE = 2**17  # half a MB
SUMS_IN_FLOAT32 = hasattr(torch.ops.aten.mm, "dtype")  # of products in bf16 on GPUs: from torch 2.8 on
NOTHING = -1e30  # the logit of what is no negative; finite: -inf would make NaN gradients in a row of such pairs


def fits_at_once(rows_QD: Tensor, columns_MD: Tensor) -> bool:
    return len(rows_QD) * len(columns_MD) <= CELLS_AT_ONCE.get(rows_QD.device.type, 2**24)


def lse_of_matrix(sim_QM: Tensor, positives: Positives, temperature: float) -> tuple[Tensor, Tensor]:
    """`(lse_Q, s_E)`: over the negatives, and of each true pair."""
    hidden = positives.no_negatives
    lse_Q, s_H = _LseOfMatrix.apply(  # type: ignore[no-untyped-call]
        at_least_float32(sim_QM), hidden.rows_E, hidden.columns_E, temperature
    )
    return lse_Q, s_H if hidden is positives else s_H[positives.place_in(hidden)]


class _LseOfMatrix(torch.autograd.Function):
    """Each negative's share in its row's sum is its gradient. It is computed with the sum, a few rows at a time: on a
    CPU they stay in the caches, where separate steps would carry the matrix through main memory a dozen times."""

    @staticmethod
    def forward(
        ctx: Any, sim_QM: Tensor, rows_E: Tensor, columns_E: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        share_QM, lse_Q1 = torch.empty_like(sim_QM), sim_QM.new_empty(len(sim_QM), 1)
        nothing = sim_QM.new_full((), NOTHING)
        for rows, pairs in _some_rows(sim_QM, rows_E):
            s_RM = sim_QM[rows] / temperature
            s_RM.index_put_((rows_E[pairs] - rows.start, columns_E[pairs]), nothing)
            highest_R1 = s_RM.amax(1, keepdim=True)
            e_RM = s_RM.sub_(highest_R1).exp_()
            sum_R1 = e_RM.sum(1, keepdim=True)
            lse_Q1[rows] = sum_R1.log().add_(highest_R1)
            torch.div(e_RM, sum_R1 * temperature, out=share_QM[rows])
        ctx.save_for_backward(share_QM, rows_E, columns_E)
        ctx.temperature = temperature
        return lse_Q1[:, 0], sim_QM[rows_E, columns_E] / temperature

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        share_QM, rows_E, columns_E = ctx.saved_tensors
        by_sim_QM = share_QM * gradients[0][:, None]
        by_sim_QM.index_put_((rows_E, columns_E), gradients[1] / ctx.temperature)  # these are no negatives
        return by_sim_QM, None, None, None


def _some_rows(sim_QM: Tensor, rows_E: Tensor) -> Iterator[tuple[slice, slice]]:
    """Slices of the rows, and of the pairs that lie in them; on a GPU all at once."""
    Q, M = sim_QM.shape
    if sim_QM.device.type != "cpu":
        yield slice(0, Q), slice(0, len(rows_E))
        return
    size = max(1, CELLS_IN_CACHE // max(1, M))
    starts = torch.arange(0, Q + size, size)
    pair_of_start = torch.searchsorted(rows_E, starts).tolist()
    for part in range(len(starts) - 1):
        yield slice(part * size, min(Q, (part + 1) * size)), slice(pair_of_start[part], pair_of_start[part + 1])


def lse_in_parts(
    rows_QD: Tensor,
    columns_MD: Tensor,
    positives: Positives,
    temperature: float,
    columns_at_once: int | None = None,
    *,
    bf16: bool = False,
) -> tuple[Tensor, Tensor]:
    """The same of `rows_QD @ columns_MD.T`, some columns at a time, and its gradient as well.

    With `bf16` what is multiplied is rounded to it, what comes out is not: sums are float32.
    """
    cells = CELLS_AT_ONCE.get(rows_QD.device.type, 2**24)
    size = columns_at_once or max(1, cells // max(1, len(rows_QD)))
    rows_E, columns_E = positives.no_negatives.rows_E, positives.no_negatives.columns_E
    lse_Q: Tensor = _LseInParts.apply(  # type: ignore[no-untyped-call]
        rows_QD, columns_MD, rows_E, columns_E, temperature, size, bf16
    )
    row_ED, column_ED = rows_QD.index_select(0, positives.rows_E), columns_MD.index_select(0, positives.columns_E)
    s_E = (row_ED * column_ED).sum(1) / temperature
    return lse_Q, s_E


class _LseInParts(torch.autograd.Function):
    """Each part's logits are computed again for the gradient: a product more in place of Q x M numbers."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(
        ctx: Any,
        rows_QD: Tensor,
        columns_MD: Tensor,
        rows_E: Tensor,
        columns_E: Tensor,
        temperature: float,
        size: int,
        bf16: bool,
    ) -> Tensor:
        lse_Q = rows_QD.new_full((len(rows_QD),), -torch.inf)
        for start in range(0, len(columns_MD), size):
            s_QC = _logits(rows_QD, columns_MD[start : start + size], rows_E, columns_E - start, temperature, bf16)
            lse_Q = torch.logaddexp(lse_Q, s_QC.logsumexp(1))
        ctx.save_for_backward(rows_QD, columns_MD, rows_E, columns_E, lse_Q)
        ctx.temperature, ctx.size, ctx.bf16 = temperature, size, bf16
        return lse_Q

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, None, None, None, None, None]:
        rows_QD, columns_MD, rows_E, columns_E, lse_Q = ctx.saved_tensors
        by_rows_QD = torch.zeros_like(rows_QD) if ctx.needs_input_grad[0] else None
        by_columns_MD = torch.empty_like(columns_MD)
        weight_Q1 = (gradients[0] / ctx.temperature)[:, None]
        for start in range(0, len(columns_MD), ctx.size):
            part = slice(start, start + ctx.size)
            s_QC = _logits(rows_QD, columns_MD[part], rows_E, columns_E - start, ctx.temperature, ctx.bf16)
            share_QC = s_QC.sub_(lse_Q[:, None]).exp_().mul_(weight_Q1)
            if by_rows_QD is not None:
                by_rows_QD += _product(share_QC, columns_MD[part], ctx.bf16)
            by_columns_MD[part] = _product(share_QC.T, rows_QD, ctx.bf16)
        return by_rows_QD, by_columns_MD, None, None, None, None, None


def _logits(
    rows_QD: Tensor, columns_CD: Tensor, rows_E: Tensor, columns_E: Tensor, temperature: float, bf16: bool
) -> Tensor:
    """Of some columns; pairs E count as nothing. Pairs of other parts add 0 somewhere: no look at their number."""
    s_QC = _product(rows_QD, columns_CD.T, bf16).div_(temperature)
    C = len(columns_CD)
    inside_E = (columns_E >= 0) & (columns_E < C)
    place_E = torch.where(inside_E, rows_E * C + columns_E, 0)
    return s_QC.view(-1).index_add_(0, place_E, inside_E.to(s_QC.dtype) * NOTHING).view_as(s_QC)


def _product(a: Tensor, b: Tensor, bf16: bool) -> Tensor:
    """a @ b; with `bf16` of rounded numbers, whose sums stay float32."""
    if not bf16:
        return a @ b
    a, b = a.bfloat16(), b.bfloat16()
    if a.device.type == "cuda" and SUMS_IN_FLOAT32:
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()
