"""Current: which model answers now, and how another takes its place while requests run.

A generation that has begun to answer a request finishes it; who asks next meets the new one.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError
from ..model.description import DESCRIPTION
from ..model.model import PrimeModel
from .generation import Generation
from .quiet import settle

LOOK_EVERY_S = 2.0
SETTLE_AFTER_S = 60.0  # then no request has the old model any more
Signature = tuple[int, int, int] | None
Report = Callable[[str], None]


class Current:
    """Loads at once, or says why it cannot. `load` and `change` take their time and belong into a thread. `alone`: the
    server is the whole process, and may tell the garbage collector what stays."""

    def __init__(self, path: Path, device: str = "auto", *, alone: bool = False) -> None:
        self._path, self._device, self._alone, self._settle_at = path, device, alone, math.inf
        self._seen = _signature(path)
        self.generation = Generation(PrimeModel.load(path, device), path)
        self.report: Report = lambda outcome: None

    def load(self) -> Generation:
        """Reads the directory again. Where it holds no model the old one stays."""
        self._seen = _signature(self._path)
        try:
            self._swap(PrimeModel.load(self._path, self._device), changed=False)
        except Exception as error:
            self.report("failed")
            reason = str(error) if isinstance(error, UserError) else type(error).__name__
            print(f"primexmc: the model stays as it is: {reason}", file=sys.stderr)
            raise
        self.report("loaded")
        return self.generation

    def change(self, model: PrimeModel, *, save: bool) -> Generation:
        """Puts a changed copy of the model in its place; saved, it is what the next start reads, too."""
        if save:
            model.save(self._path)
            self._seen = _signature(self._path)
        self._swap(model, changed=not save)
        return self.generation

    async def watch(self, reload: Callable[[], object]) -> None:
        """Until it is cancelled: a directory whose description changed is read when it has been quiet for a look."""
        before = self._seen
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = _signature(self._path)
            if now is not None and now != self._seen and now == before:
                reload()
            before = now
            if time.monotonic() >= self._settle_at:
                self._settle_at = math.inf
                settle()

    def _swap(self, model: PrimeModel, *, changed: bool) -> None:
        self.generation = Generation(model, self._path, self.generation.number + 1, changed)
        self._settle_at = time.monotonic() + SETTLE_AFTER_S if self._alone else math.inf
        print(f"primexmc: generation {self.generation.number} of the model answers from now on", file=sys.stderr)


def _signature(path: Path) -> Signature:
    """Differs when the description was written again; none while a directory is being replaced."""
    try:
        found = (path / DESCRIPTION).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
