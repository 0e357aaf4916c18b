"""A phase: one training from epoch 0 on one set of queries. Choosing on validation is one, the refit another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..config import Settings
from .data import TrainingData
from .schedule import Schedule


@dataclass(frozen=True)
class Phase:
    """What a phase trains on and for how long. The refit keeps the schedule of all epochs and stops at the best one."""

    name: Literal["choose", "refit", "all"]
    settings: Settings
    data: TrainingData
    last_epoch: int
    bf16: bool

    @property
    def schedule(self) -> Schedule:
        steps_per_epoch = -(-self.data.num_queries // self.settings.training.batch_size)
        return Schedule(self.settings, steps_per_epoch)

    def validates_after(self, epoch: int) -> bool:
        every = self.settings.training.validate_every
        return self.name == "choose" and every > 0 and (epoch % every == 0 or epoch == self.last_epoch)
