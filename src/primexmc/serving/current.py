"""Current: which model answers now, and how another takes its place while requests run.

A generation that has begun to answer a request finishes it; who asks next meets the new one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError
from ..model.description import DESCRIPTION
from ..model.model import PrimeModel
from .generation import Generation

LOOK_EVERY_S = 2.0
Signature = tuple[int, int, int] | None
Report = Callable[[str], None]


class Current:
    """Loads at once, or says why it cannot. `load` and `change` take their time and belong into a thread."""

    def __init__(self, path: Path, device: str = "auto") -> None:
        self._path, self._device = path, device
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

    def _swap(self, model: PrimeModel, *, changed: bool) -> None:
        self.generation = Generation(model, self._path, self.generation.number + 1, changed)
        print(f"primexmc: generation {self.generation.number} of the model answers from now on", file=sys.stderr)


def _signature(path: Path) -> Signature:
    """Differs when the description was written again; none while a directory is being replaced."""
    try:
        found = (path / DESCRIPTION).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
