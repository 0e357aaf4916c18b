"""TokenBatch: texts of different lengths as one flat row of token ids, and back to padded rectangles.

Shapes: B texts, T tokens in all, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenBatch:
    """Text i is `ids_T[offsets[i]:offsets[i + 1]]`. The ids lie on the device, the offsets on the CPU."""

    ids_T: Tensor
    offsets: IntArray

    @classmethod
    def from_arrays(cls, ids: npt.NDArray[np.integer], offsets: IntArray, device: torch.device) -> TokenBatch:
        """Copies the ids to the device, without waiting for it."""
        return cls(to_device(torch.from_numpy(np.asarray(ids, dtype=np.int64)), device), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def device(self) -> torch.device:
        return self.ids_T.device

    def start_B(self) -> Tensor:
        """Where each text starts, on the device."""
        return to_device(torch.from_numpy(self.offsets[:-1]), self.device)

    def length_B(self) -> Tensor:
        return to_device(torch.from_numpy(self.lengths), self.device)

    def padded(self, rows: IntArray, pad_id: int) -> tuple[Tensor, Tensor]:
        """Token ids and attention mask of some texts, as rectangles as wide as the longest of them."""
        lengths = self.lengths[rows]
        width = max(int(lengths.max(initial=1)), 1)
        place = np.arange(width)
        inside = place < lengths[:, None]
        source = np.where(inside, self.offsets[rows][:, None] + place, 0)
        if len(self.ids_T) == 0:
            ids = torch.full(source.shape, pad_id, dtype=torch.int64, device=self.device)
            return ids, torch.zeros_like(ids, dtype=torch.bool)
        mask = to_device(torch.from_numpy(inside), self.device)
        ids = self.ids_T[to_device(torch.from_numpy(source), self.device)]
        return torch.where(mask, ids, pad_id), mask

    def groups_by_length(self, tokens_per_group: int, max_groups: int) -> Iterator[IntArray]:
        """Rows sorted by length and cut into groups of about equal numbers of tokens, so that little is padded."""
        order = np.argsort(self.lengths, kind="stable")
        total = int(self.lengths.sum())
        num_groups = min(max_groups, max(1, round(total / tokens_per_group)), max(1, len(order)))
        done = np.cumsum(self.lengths[order])
        cuts = np.searchsorted(done, total * np.arange(1, num_groups) / num_groups)
        yield from (group for group in np.split(order, np.unique(cuts)) if len(group))


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on the device; on CUDA through pinned memory, so that the CPU does not wait."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
