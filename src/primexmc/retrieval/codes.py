"""Codes: the labels' vectors in a shorter form that is quick to multiply, and how wrong such a product can be.

Whatever the form, |h.z - product| <= error, by Cauchy and Schwarz from the vectors that were really stored:
h.z - h'.z' = h.(z - z') + (h - h').z'. Nothing is assumed about the data, so nothing that the exact scores put among
the best can be missed.

Shapes: B queries, L labels, D dimensions; C labels in a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import UserError

Precision = Literal["fp32", "bf16", "fp16", "int8"]  # fp16 on GPUs: as quick as bf16 there, and eight times as near
GROUP = 32  # labels that are compared together; the codes end with a whole group
ROWS = 8_192  # coded at once, whole groups
ROUNDING = 2.0**-24  # of one fp32 operation
OUTPUT_ROUNDING = {"bf16": 2.0**-8, "fp16": 2.0**-11}  # of products that come out in half precision
WIDEST_INT8 = 2**31 // 127**2  # dimensions whose sum of int8 products is still an int32


@dataclass
class CodedQueries:
    """h'_BD, what one unit of a product is worth, and how far a product may lie from the exact score."""

    codes_BD: Tensor
    unit_B1: Tensor
    error_B1: Tensor


@dataclass
class Codes:
    """z'_LD, filled up with zeros to whole groups. `error` is a label's largest |z - z'|, `norm` its largest |z|."""

    precision: Precision
    codes_LD: Tensor
    scale: float
    error: float
    norm: float

    @classmethod
    def of(cls, z_LD: Tensor, precision: Precision) -> Codes:
        """int8 has one scale for all labels, so that products need not be scaled before they are compared."""
        if precision == "int8" and z_LD.shape[1] > WIDEST_INT8:
            raise UserError(f'search.precision = "int8" takes at most {WIDEST_INT8:,} dimensions; take "bf16".')
        largest = float(z_LD.abs().max()) if z_LD.numel() else 1.0
        scale = largest / 127 or 1.0
        blocks, error, norm = [], 0.0, 0.0
        for start in range(0, len(z_LD), ROWS):
            z_CD = z_LD[start : start + ROWS].float()
            z_CD = functional.pad(z_CD, (0, 0, 0, -len(z_CD) % GROUP))
            codes_CD = _code(z_CD, torch.tensor(scale), precision)
            short_CD = codes_CD.float() * scale if precision == "int8" else codes_CD.float()
            error = max(error, float((z_CD - short_CD).norm(dim=1).max()))
            norm = max(norm, float(z_CD.norm(dim=1).max()))
            blocks.append(codes_CD)
        return cls(precision, torch.cat(blocks), scale if precision == "int8" else 1.0, error, norm)

    def of_queries(self, h_BD: Tensor) -> CodedQueries:
        """The queries in the same form, each with a scale of its own."""
        scale_B1 = (h_BD.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-30)
        codes_BD = _code(h_BD, scale_B1, self.precision)
        short_BD = codes_BD.float() * scale_B1 if self.precision == "int8" else codes_BD.float()
        norm_B1 = h_BD.norm(dim=1, keepdim=True)
        lost_B1 = (h_BD - short_BD).norm(dim=1, keepdim=True)
        error_B1 = norm_B1 * self.error + lost_B1 * (self.norm + self.error)
        # fp32 adds up D products, here and where the exact scores are made; half precision is rounded once more.
        rounding = 4 * (h_BD.shape[1] + 8) * ROUNDING + OUTPUT_ROUNDING.get(self.precision, 0.0)
        error_B1 += rounding * (norm_B1 + lost_B1) * (self.norm + self.error)
        unit_B1 = scale_B1 * self.scale if self.precision == "int8" else torch.ones_like(scale_B1)
        return CodedQueries(codes_BD, unit_B1, error_B1)

    def products(self, queries: CodedQueries, start: int, out_BC: Tensor) -> None:
        """Of the queries with the labels from `start` on, as many as fit, in units."""
        block_CD = self.codes_LD[start : start + out_BC.shape[1]]
        if self.precision == "int8":
            torch._int_mm(queries.codes_BD, block_CD.T, out=out_BC)
        else:
            torch.mm(queries.codes_BD, block_CD.T, out=out_BC)

    @property
    def product_type(self) -> torch.dtype:
        return torch.int32 if self.precision == "int8" else self.codes_LD.dtype


def _code(x_ND: Tensor, scale: Tensor, precision: Precision) -> Tensor:
    if precision == "int8":
        return (x_ND / scale).round_().clamp_(-127, 127).to(torch.int8)
    return x_ND.to({"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, x_ND.dtype))
