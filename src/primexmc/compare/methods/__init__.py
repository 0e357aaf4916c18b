"""Methods by name, a short TOML file each. Adding one is adding a file; docs/compare.md tells what may stand in it."""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any


def file_names() -> list[str]:
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def load_file(name: str) -> dict[str, Any]:
    return tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    return resources.files(__name__)
