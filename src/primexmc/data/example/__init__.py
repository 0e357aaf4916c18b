"""The embedded example: works of art and their subjects, from the Tate collection (CC0 1.0; see NOTICE here)."""

from __future__ import annotations

from pathlib import Path


def example_path() -> Path:
    """The directory of the example in the LF layout, for `Corpus.load`."""
    return Path(__file__).parent
