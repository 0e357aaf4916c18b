"""Fits a judge (fusion/judge.py) on held-out queries' candidates: right labels must come before wrong ones.

Shapes: Q queries, C candidates a query, P all candidates, F features, H hidden units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..fusion.judge import SCALE, Floats, Judge, standardised

HIDDEN = 8
RIDGE = 1e-3
STEPS = 50
FOLDS = 3
FEWEST = 200  # queries with a right candidate; of fewer there is little to learn
MOST = 3000
NEAREST = 50  # candidates of a query that it learns from
NOWHERE = -1e9  # the score of what is no candidate
Bools = NDArray[np.bool_]


def fit_judge(x_QCF: Floats, right_QC: Bools) -> Judge | None:
    """The sum of the voices is the first feature, and what the judge starts from; None where there are too few."""
    rows = np.flatnonzero(right_QC.any(1))[:MOST]
    order_QC = np.argsort(-x_QCF[rows, :, 0], axis=1, kind="stable")[:, :NEAREST]
    x_QCF = np.take_along_axis(x_QCF[rows], order_QC[:, :, None], axis=1)
    right_QC = np.take_along_axis(right_QC[rows], order_QC, axis=1)
    rows = np.flatnonzero(right_QC.any(1))
    return _fit(x_QCF[rows], right_QC[rows]) if len(rows) >= FEWEST else None


def held_out_judgement(x_QCF: Floats, right_QC: Bools) -> Floats | None:
    """What judges add that were fitted on other queries: the honest way to see what one is worth."""
    fold_Q = np.arange(len(x_QCF)) % FOLDS
    added_QC = np.zeros(right_QC.shape, np.float32)
    for fold in range(FOLDS):
        judge = fit_judge(x_QCF[fold_Q != fold], right_QC[fold_Q != fold])
        if judge is None:
            return None
        added_QC[fold_Q == fold] = judge(x_QCF[fold_Q == fold])
    return added_QC


def _fit(x_QCF: Floats, right_QC: Bools) -> Judge:
    sum_QC, there_QC = x_QCF[:, :, 0], np.isfinite(x_QCF[:, :, 0])
    there_PF = x_QCF[there_QC].astype(np.float64)
    mean_F, spread_F, varies_F = there_PF.mean(0), there_PF.std(0) + 1e-3, there_PF.std(0) > 1e-6
    x = torch.from_numpy(standardised(x_QCF, mean_F, spread_F) * varies_F.astype(np.float32))
    base = torch.from_numpy(np.where(there_QC, sum_QC / SCALE, NOWHERE).astype(np.float32))
    right = torch.from_numpy(right_QC.astype(np.float32))
    F, generator = x.shape[2], torch.Generator().manual_seed(0)
    a_FH = torch.randn(F, HIDDEN, generator=generator) / F**0.5
    a_FH = (a_FH * torch.from_numpy(varies_F)[:, None]).requires_grad_()  # of what never varies nothing is learned
    a_H, b_H, d_F = (torch.zeros(size, requires_grad=True) for size in (HIDDEN, HIDDEN, F))
    learned = [a_FH, a_H, b_H, d_F]
    optimiser = torch.optim.LBFGS(learned, max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = listwise(base + torch.tanh(x @ a_FH + a_H) @ b_H + x @ d_F, right)
        loss = loss + RIDGE * torch.cat([weight.flatten() for weight in learned]).square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    plain: list[Any] = [weight.detach().tolist() for weight in learned]
    return Judge(tuple(mean_F.tolist()), tuple(spread_F.tolist()), tuple(map(tuple, plain[0])), *map(tuple, plain[1:]))


def listwise(scores_QC: Tensor, right_QC: Tensor) -> Tensor:
    """For each right candidate -log of its share among itself and the wrong ones; the mean of each query's, then of
    all queries'. Every query has a right one."""
    wrong_Q1 = scores_QC.masked_fill(right_QC > 0, NOWHERE).logsumexp(1, keepdim=True)
    terms_QC = functional.softplus(wrong_Q1 - scores_QC) * right_QC
    return (terms_QC.sum(1) / right_QC.sum(1)).mean()
