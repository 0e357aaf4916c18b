"""Progress on the screen and rows in metrics.jsonl."""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..errors import UserError
from .phase import Phase
from .state import TrainingState

REDRAW_S = 0.5


class Log:
    """One line that changes on a terminal, a line an epoch elsewhere; always a JSON row an epoch and a validation."""

    def __init__(self, file: Path, *, quiet: bool = False) -> None:
        self.file, self.quiet = file, quiet
        self.console = Console(stderr=True, highlight=False, quiet=quiet, soft_wrap=True)
        self.live = Live(console=self.console, transient=True, auto_refresh=False)
        self.phase: Phase | None = None
        self._begun = self._counted = self._drawn = time.perf_counter()
        self._queries = self._first_step = 0

    def __enter__(self) -> Log:
        if self.console.is_terminal and not self.quiet:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def start_epoch(self, phase: Phase, state: TrainingState) -> None:
        self.phase = phase
        self._begun = self._counted = time.perf_counter()
        self._queries, self._first_step = 0, state.step

    def step(self, state: TrainingState, num_queries: int) -> None:
        self._queries += num_queries
        now = time.perf_counter()
        state.seconds += now - self._counted
        self._counted = now
        if self.live.is_started and now - self._drawn > REDRAW_S:
            self._drawn = now
            self.live.update(Text(self._line(state, self._numbers(state))), refresh=True)

    def end_epoch(self, state: TrainingState) -> None:
        numbers = self._numbers(state)
        self._write(state, "train", numbers)
        self.say(self._line(state, numbers))

    def validation(self, state: TrainingState, scores: dict[str, float]) -> None:
        self._write(state, "validation", scores)
        shown = "  ".join(f"{name} {scores[name]:.1f}" for name in ("P@1", "P@5", "nDCG@5", "PSP@5", "R@100"))
        self.say(f"    validation  {shown}")

    def classifier(self, run: str, numbers: dict[str, Any]) -> None:
        """An epoch of its training."""
        self._append({"phase": "classifier", "run": run, **numbers})
        self.say(f"classifier  epoch {numbers['epoch']}  loss {numbers['loss']:.4f}  {numbers['seconds']:.1f} s")

    def _numbers(self, state: TrainingState) -> dict[str, float]:
        loss, violators, steps = state.totals.tolist()
        if not math.isfinite(loss):
            assert self.phase is not None
            epoch = (state.step - 1) // self.phase.schedule.steps_per_epoch + 1
            raise UserError(
                f"training broke down in epoch {epoch}: the loss is not a number. "
                "Lower training.learning_rate, or set training.precision=fp32."
            )
        seconds = max(time.perf_counter() - self._begun, 1e-9)
        return {
            "loss": loss / max(steps, 1),
            "violators": violators / max(steps, 1),
            "queries_per_s": self._queries / seconds,
            "memory_gib": peak_memory_gib(state.device),
        }

    def _line(self, state: TrainingState, numbers: dict[str, float]) -> str:
        assert self.phase is not None
        steps, schedule = max(state.step - self._first_step, 1), self.phase.schedule
        epoch = min(state.step // schedule.steps_per_epoch, self.phase.last_epoch)
        done_s = time.perf_counter() - self._begun
        left_s = (self.phase.last_epoch * schedule.steps_per_epoch - state.step) * done_s / steps
        return (
            f"{self.phase.name}  epoch {epoch}/{self.phase.last_epoch}  loss {numbers['loss']:.4f}"
            f"  violators {100 * numbers['violators']:.1f}%  {numbers['queries_per_s']:,.0f} queries/s"
            f"  {numbers['memory_gib']:.1f} GiB  {_clock(left_s)} left"
        )

    def _write(self, state: TrainingState, kind: str, numbers: dict[str, float]) -> None:
        assert self.phase is not None
        place = {
            "phase": kind,
            "run": self.phase.name,
            "epoch": state.epoch,
            "step": state.step,
            "seconds": state.seconds,
        }
        self._append(place | numbers)

    def _append(self, values: dict[str, Any]) -> None:
        row = {name: _rounded(value) for name, value in values.items()}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")


def peak_memory_gib(device: torch.device) -> float:
    """The most that was in use so far: of the GPU's memory, or of the process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
