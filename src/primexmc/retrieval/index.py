"""What every index can do: the whole surface between a model and whatever searches its labels.

Shapes: N labels that are new, Q queries, L labels, D dimensions, K results a query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

Vectors = NDArray[np.float32] | torch.Tensor


class Index(Protocol):
    """Labels' vectors that can be searched. A label's id is its row: 0 to L - 1, always."""

    z_LD: torch.Tensor

    @property
    def backend(self) -> str:
        """ "exact", "faiss" or "milvus"."""

    def __len__(self) -> int: ...

    def search(
        self, h_QD: Vectors, top: int, filtered: Any | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids and inner products (fp32) of the `top` labels of every query, best first, equal ones by rising id.

        -1 and -inf where there are no more. `filtered` (queries x labels, csr) holds pairs that never come back.
        """

    def add(self, z_ND: Vectors) -> None:
        """More labels, with the next ids."""

    def remove(self, ids: Any) -> None:
        """Labels go, and the later ones move up."""

    def follow(self, z_LD: torch.Tensor) -> Index:
        """An index of these labels: those that were there already stay as they are, whatever their new ids. The old
        index goes on answering for the old labels."""

    def rebuild(self) -> None:
        """The same labels, as if they had been there from the beginning."""

    def save(self, directory: Path) -> dict[str, Any]:
        """Writes what the index needs besides the vectors; what it gives back is given to `load`."""

    def close(self) -> None:
        """Lets go of files and connections."""
