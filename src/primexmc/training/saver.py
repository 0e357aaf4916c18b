"""When a run saves itself: every so often, and when it is interrupted. And how it finds itself again."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import UserError
from .checkpoint import Checkpoint, has_checkpoint, load_checkpoint, save_checkpoint
from .place import FOLDER, METRICS
from .state import TrainingState


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop and has saved itself; the message says how to go on."""


class Saver:
    """Keeps `training/` under the output directory. `identity` must be the same for a run and its continuation."""

    def __init__(self, place: Path, identity: dict[str, Any], every_s: float, *, enabled: bool) -> None:
        self.place, self.identity, self.every_s, self.enabled = place, identity, every_s, enabled
        self.folder = place / FOLDER
        self.facts: dict[str, Any] = {}  # what earlier phases found out
        self.seconds_before = 0.0
        self.nothing_to_resume = False
        self._loaded: Checkpoint | None = None
        self._begun = self._last = time.perf_counter()
        self._stop = False

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Looks at what is there before anything is written."""
        unfinished = has_checkpoint(self.folder)
        if unfinished and resume and not overwrite:
            self._loaded = load_checkpoint(self.folder)
            self._check_identity()
        self.nothing_to_resume = resume and not unfinished
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._loaded is None:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            (self.place / METRICS).write_bytes(b"")
        else:
            _truncate(self.place / METRICS, self._loaded.run["metrics_bytes"])

    def take(self, phase: str) -> Checkpoint | None:
        """The checkpoint, if it is of this phase; once."""
        loaded, self._loaded = self._loaded, None
        return loaded if loaded is not None and loaded.run["phase"] == phase else None

    def save_if_due(self, phase: str, state: TrainingState) -> None:
        """Called after every step."""
        if self._stop or (self.enabled and time.perf_counter() - self._last >= self.every_s):
            self.save_now(phase, state)
            if self._stop:
                how = f" `--resume` continues from step {state.step}." if self.enabled else ""
                raise Interrupted(f"stopped after step {state.step}.{how}")

    def save_now(self, phase: str, state: TrainingState) -> None:
        """Due or not."""
        if self.enabled:
            self._save(phase, state)

    def stop_if_asked(self) -> None:
        """Called after every step of what has no checkpoint of its own."""
        if self._stop:
            how = " `--resume` begins this stage again; the encoder is trained." if self.enabled else ""
            raise Interrupted(f"stopped while the classifier was trained.{how}")

    def _save(self, phase: str, state: TrainingState) -> None:
        metrics = self.place / METRICS
        run = self.identity | {
            "phase": phase,
            "facts": self.facts,
            "seconds": self.seconds_before + time.perf_counter() - self._begun,
            "metrics_bytes": metrics.stat().st_size if metrics.exists() else 0,
        }
        save_checkpoint(self.folder, Checkpoint(state.tensors(), state.numbers(), run))
        self._last = time.perf_counter()

    def _check_identity(self) -> None:
        assert self._loaded is not None
        run = self._loaded.run
        if run["corpus"] != self.identity["corpus"]:
            raise UserError(
                f"{self.place}: the unfinished training is of other data; "
                "give it the data it began with, or --overwrite."
            )
        if run.get("from") != self.identity.get("from"):
            raise UserError(
                f"{self.place}: the unfinished training did not begin with this model, or began with another; "
                "resume it with the same --from, or start afresh with --overwrite."
            )
        for section, values in self.identity["settings"].items():
            for name, value in values.items():
                before = run["settings"].get(section, {}).get(name)
                if before != value:
                    raise UserError(
                        f"{self.place}: the unfinished training has {section}.{name}={before}, not {value}; "
                        "resume it with the settings it began with, or start afresh with --overwrite."
                    )
        self.facts, self.seconds_before = run["facts"], run["seconds"]

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM stop after the step; a second one stops at once."""

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        previous: dict[signal.Signals, Any] = {}
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                previous[number] = signal.signal(number, stop)
        except ValueError:  # not in the main thread: there is nothing to catch
            pass
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _truncate(file: Path, size: int) -> None:
    """Rows written after the checkpoint will be written again."""
    if file.exists() and file.stat().st_size > size:
        with file.open("r+b") as lines:
            lines.truncate(size)
