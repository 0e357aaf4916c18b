"""The settings and the presets, for `primexmc info`."""

from __future__ import annotations

import dataclasses
import json
import platform
import textwrap
from importlib import metadata
from typing import Any

from .. import __version__
from ..config import Settings, all_settings
from ..presets import inherited_values, preset_names, preset_text

PACKAGES = ("torch", "transformers", "numpy", "scipy", "pyarrow")


def settings_facts() -> dict[str, Any]:
    return {key: {"default": entry.default, "help": entry.metadata["help"]} for key, entry in all_settings().items()}


def settings_text() -> str:
    """A section a paragraph."""
    known, lines = all_settings(), list[str]()
    for section in dataclasses.fields(Settings):
        lines += ["", f"[{section.name}]  {type(section.default).__doc__}"]
        lines += [_setting(key, entry) for key, entry in known.items() if key.startswith(section.name + ".")]
    return "\n".join(lines).strip()


def preset_as_text(name: str) -> str:
    """The file, and as comments what stands in the presets that it builds on."""
    inherited = inherited_values(name)
    lines = [f"# {key} = {json.dumps(value)}  ({source})" for key, (value, source) in inherited.items()]
    return "\n".join([preset_text(name).rstrip(), *(["", "# inherited:", *lines] if lines else [])])


def overview_facts() -> dict[str, Any]:
    versions = {name: found for name in PACKAGES if (found := _version(name))}
    presets = {name: _first_sentence(name) for name in preset_names()}
    return {"version": __version__, "python": platform.python_version(), "packages": versions, "presets": presets}


def overview_text() -> str:
    facts = overview_facts()
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    width = max(map(len, facts["presets"]))
    presets = [f"  {name:{width}}  {sentence}" for name, sentence in facts["presets"].items()]
    return "\n".join(
        [
            f"primexmc {facts['version']} on Python {facts['python']} with {packages}",
            "",
            "presets (primexmc info --preset NAME shows one):",
            *presets,
            "",
            "also: primexmc info MODEL, primexmc info DATA, primexmc info --settings",
        ]
    )


def _setting(key: str, entry: dataclasses.Field[Any]) -> str:
    """Key and default in columns; the sentence beside them, wrapped."""
    default = [round(value, 3) for value in entry.default] if isinstance(entry.default, tuple) else entry.default
    shown = "true" if default is True else "false" if default is False else str(default) or '""'
    head = f"  {key:34} {shown:8} "
    return textwrap.fill(entry.metadata["help"], 118, initial_indent=head, subsequent_indent=" " * 46)


def _first_sentence(preset: str) -> str:
    line = preset_text(preset).splitlines()[0].lstrip("# ")
    return line.removeprefix(f"{preset}: ")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
