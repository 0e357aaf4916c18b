"""Raw files -> arrays."""

from __future__ import annotations

from .example import example_path

__all__ = ["example_path"]
