"""Exact search: the labels with the largest inner products, on CPU or GPU, however the products are made.

Shapes: Q queries, L labels, D dimensions, K results a query; B queries in a block.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .codes import GROUP, Codes, Precision
from .filtered import Filtered
from .preselect import preselect
from .quickest import quickest_precision
from .scan import scan
from .shortlist import shortlist
from .vectors import checked_vectors, without_rows

QUERIES_PER_BLOCK = {"cpu": 256, "cuda": 1024}
WORTH_CODES = {"cpu": 2**21, "cuda": 2**23}  # numbers in all vectors; below, a plain scan is as quick


class ExactIndex:
    """All labels' vectors, searched exactly where they lie (CPU or GPU, fp32 or half precision; scores are fp32).

    `precision` is what the first products are made in: "int8" and "bf16" select candidates, which are then scored in
    fp32, and find what "fp32" finds; "auto" takes what is quickest on this machine. Equal scores come in the order of
    the label ids, lower first.
    """

    backend = "exact"

    def __init__(
        self,
        z_LD: torch.Tensor,
        *,
        precision: Literal["auto", "fp32", "bf16", "int8"] = "auto",
        labels_per_block: int | None = None,
    ) -> None:
        self.z_LD = checked_vectors(z_LD)
        self.precision: Literal["auto", "fp32", "bf16", "int8"] = precision
        self.labels_per_block = labels_per_block
        self._codes: Codes | None = None

    def __len__(self) -> int:
        return len(self.z_LD)

    @torch.inference_mode()
    def search(
        self, h_QD: NDArray[np.float32] | torch.Tensor, top: int, filtered: Any | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids and scores of the `top` labels of every query, best first; -1 and -inf where there are no more.

        `filtered` (queries x labels, csr) holds pairs that never come back.
        """
        h_QD = checked_vectors(torch.as_tensor(h_QD), self.z_LD.shape[1])
        assert top >= 1, top
        pairs = None if filtered is None else csr_matrix(filtered)
        assert pairs is None or pairs.shape == (len(h_QD), len(self)), "the filter is queries x labels"
        ids_QK = np.full((len(h_QD), top), -1, dtype=np.int64)
        scores_QK = np.full((len(h_QD), top), -np.inf, dtype=np.float32)
        size = QUERIES_PER_BLOCK.get(self.z_LD.device.type, 256)
        for start in range(0, len(h_QD) if len(self) else 0, size):
            rows = slice(start, start + size)
            h_BD = h_QD[rows].to(self.z_LD.device, torch.float32)
            ids_BK, scores_BK = self._search_block(
                h_BD, min(top, len(self)), Filtered(None if pairs is None else pairs[rows])
            )
            ids_QK[rows, : ids_BK.shape[1]] = ids_BK.cpu().numpy()
            scores_QK[rows, : ids_BK.shape[1]] = scores_BK.cpu().numpy()
        return ids_QK, scores_QK

    def add(self, z_ND: NDArray[np.float32] | torch.Tensor) -> None:
        """More labels, with the next ids."""
        new_ND = checked_vectors(torch.as_tensor(z_ND), self.z_LD.shape[1]).to(self.z_LD)
        self.z_LD, self._codes = torch.cat([self.z_LD, new_ND]), None

    def remove(self, ids: Any) -> None:
        """Labels go, and the later ones move up: ids are always 0 to L - 1."""
        self.z_LD, self._codes = without_rows(self.z_LD, ids), None

    def follow(self, z_LD: torch.Tensor) -> ExactIndex:
        """An index of these labels."""
        return ExactIndex(z_LD, precision=self.precision, labels_per_block=self.labels_per_block)

    def rebuild(self) -> None:
        """There is nothing to rebuild."""

    def close(self) -> None:
        """There is nothing to close."""

    def save(self, directory: Path) -> dict[str, Any]:
        """Nothing to write: the vectors are the model's own."""
        return {"precision": self.precision}

    @classmethod
    def load(cls, directory: Path, z_LD: torch.Tensor, facts: dict[str, Any]) -> ExactIndex:
        """The inverse of `save`."""
        return cls(z_LD, precision=facts["precision"])

    def codes(self, top: int) -> Codes | None:
        """What candidates are selected with; None where a plain scan is the better way. Made when first needed."""
        precision = self._first_precision()
        if precision is None or top * GROUP > len(self):
            return None
        if self._codes is None:
            self._codes = Codes.of(self.z_LD, precision)
        return self._codes

    def _first_precision(self) -> Precision | None:
        if self.z_LD.dtype != torch.float32 or self.labels_per_block is not None:
            return None
        large = self.z_LD.numel() >= WORTH_CODES.get(self.z_LD.device.type, 2**23)
        if self.z_LD.device.type != "cpu":
            return "fp16" if large and self.precision != "fp32" else None
        if self.precision == "auto":
            return quickest_precision(self.z_LD.shape[1]) if large else None
        return self.precision

    def _search_block(self, h_BD: torch.Tensor, top: int, filtered: Filtered) -> tuple[torch.Tensor, torch.Tensor]:
        codes, found = self.codes(top), None
        if codes is not None:
            by_codes = preselect if self.z_LD.device.type == "cpu" else shortlist
            found = by_codes(h_BD, self.z_LD, codes, top, filtered)
        if found is None:
            # GPUs multiply half precision as it is; on the CPU it is widened block by block.
            h_BD = h_BD.to(self.z_LD.dtype) if self.z_LD.device.type == "cuda" else h_BD
            found = scan(h_BD, self.z_LD, top, filtered, self.labels_per_block)
        return found
