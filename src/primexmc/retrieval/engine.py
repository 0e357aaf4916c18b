"""Engine: what a search library or a vector database has to do to become an index. Its labels have keys of their own,
which never change; approximate.py turns keys into rows and scores what is found exactly.

Shapes: N labels that are new, Q queries, D dimensions, W results a query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Floats = NDArray[np.float32]


class Engine(Protocol):
    """Finds near vectors. `effort` is its one knob between quick and thorough."""

    backend: ClassVar[str]
    effort: int
    most: int  # results that one query may ask for
    surplus: float  # how many more than wanted are asked for, because its own scores are rounded
    forgets: bool  # whether `remove` truly removes; where not, what is removed keeps coming back and is dropped

    def build(self, keys_N: Keys, z_ND: Floats, directory: Path | None) -> None:
        """Takes the first labels; an engine that keeps files does so in the directory."""

    def efforts(self) -> list[int]:
        """What is worth trying, least first."""

    def search(self, h_QD: Floats, width: int) -> Keys:
        """keys_QW of the nearest labels, best first; -1 where there are no more."""

    def add(self, keys_N: Keys, z_ND: Floats) -> None: ...

    def remove(self, keys_N: Keys) -> None: ...

    def save(self, directory: Path) -> dict[str, Any]:
        """Writes what is not on disk yet; what it gives back is given to `open`."""

    def open(self, directory: Path, facts: dict[str, Any]) -> None:
        """The inverse of `save`."""

    def close(self) -> None: ...
