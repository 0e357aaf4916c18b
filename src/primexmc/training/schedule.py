"""What changes with progress: learning rate, refreshes, cluster size. All of it follows from the step alone."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import Settings


@dataclass(frozen=True)
class Schedule:
    """Training of `epochs` epochs with `steps_per_epoch` steps each."""

    settings: Settings
    steps_per_epoch: int

    @property
    def epochs(self) -> int:
        return self.settings.training.epochs

    @property
    def total_steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def warmup_steps(self) -> int:
        """As set, but at most a tenth of a short training."""
        return min(self.settings.training.warmup_steps, max(1, self.total_steps // 10))

    def learning_rate_factor(self, step: int) -> float:
        """Up in a line during warm-up, then down in a line to zero."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        return max(0.0, (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps))

    @property
    def refresh_every_epochs(self) -> int:
        return max(1, round(self.settings.sampling.refresh * self.epochs))

    def mines_at(self, epoch: int) -> bool:
        """The nearest wrong labels are searched anew before this epoch, where they are wanted."""
        sampling = self.settings.sampling
        every = max(1, round(sampling.mining * self.epochs))
        return sampling.negatives == "mined" and epoch > 0 and epoch % every == 0

    def refreshes_at(self, epoch: int) -> bool:
        """Clusters and centroids are made again before this epoch; before the first one nothing is stale yet."""
        return epoch > 0 and epoch % self.refresh_every_epochs == 0
