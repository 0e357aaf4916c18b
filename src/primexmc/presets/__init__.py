"""Presets: experiments one can read. Each is a TOML file whose header says where its numbers come from."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from ..errors import UserError, did_you_mean


def preset_names() -> list[str]:
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files(__name__).iterdir()
        if entry.name.endswith(".toml")
    )


def preset_text(name: str) -> str:
    """The file as it is, header included."""
    names = preset_names()
    if name not in names:
        raise UserError(f'there is no preset "{name}".{did_you_mean(name, names)} There are: {", ".join(names)}.')
    return (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def load_preset(name: str) -> dict[str, Any]:
    """Its settings as nested values."""
    return tomllib.loads(preset_text(name))
