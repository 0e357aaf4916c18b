"""Presets: experiments one can read. Each is a TOML file whose header says where its numbers come from.

A line `base = "name"` before the first section builds on another preset: the file then names only what differs.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ..errors import UserError, did_you_mean

BASE = "base"


def preset_names() -> list[str]:
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """The file as it is, header included, without what it builds on."""
    names = preset_names()
    if name not in names:
        raise UserError(f'there is no preset "{name}".{did_you_mean(name, names)} There are: {", ".join(names)}.')
    return (_folder() / f"{name}.toml").read_text(encoding="utf-8")


def load_preset(name: str) -> dict[str, Any]:
    """Its settings as nested values, with those of the presets that it builds on."""
    merged: dict[str, Any] = {}
    for layer in preset_lineage(name):
        for section, values in _own_values(layer).items():
            merged[section] = merged.get(section, {}) | values
    return merged


def preset_lineage(name: str) -> list[str]:
    """The presets that it builds on, the most general first, and last itself."""
    lineage = [name]
    while base := tomllib.loads(preset_text(lineage[0])).get(BASE):
        assert base not in lineage, f"preset {name} builds on itself"
        lineage.insert(0, base)
    return lineage


def inherited_values(name: str) -> dict[str, tuple[Any, str]]:
    """`{"training.epochs": (300, "prime"), ...}`: what stands only in the presets that it builds on, and where."""
    *bases, own = preset_lineage(name)
    found = {
        f"{section}.{key}": (value, layer)
        for layer in bases
        for section, values in _own_values(layer).items()
        for key, value in values.items()
    }
    named = {f"{section}.{key}" for section, values in _own_values(own).items() for key in values}
    return {key: entry for key, entry in found.items() if key not in named}


def _own_values(name: str) -> dict[str, Any]:
    return {section: values for section, values in tomllib.loads(preset_text(name)).items() if section != BASE}


def _folder() -> Traversable:
    return resources.files(__name__)
