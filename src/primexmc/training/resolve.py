"""Which settings a training has: preset, then file, then single values; what none of them names is derived."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import Settings, flatten, read_toml
from ..data.corpus import Corpus
from ..model.encode import pick_device
from ..own_code import allow_named
from ..presets import load_preset
from .derive import default_preset, derived_settings, shape_of


def resolve(
    corpus: Corpus, preset: str | None, config: Path | None, values: Mapping[str, Any]
) -> tuple[Settings, dict[str, Any]]:
    """The settings, and which of them were derived."""
    layers: list[tuple[Mapping[str, Any], str]] = [] if config is None else [(read_toml(config), str(config))]
    layers.append((values, "settings"))
    named = {key: value for layer, _ in layers for key, value in flatten(layer)}
    allow_named(named)
    device = str(named.get("training.device", "auto"))
    preset = None if preset == "auto" else preset
    name = preset or default_preset(pick_device(device).type == "cuda")
    layers.insert(0, (load_preset(name), f"preset {name}"))
    given = {key: value for layer, _ in layers for key, value in flatten(layer)}
    derived = derived_settings(shape_of(corpus), given)
    settings = Settings().with_values(derived, "derived settings")
    for layer, source in layers:
        settings = settings.with_values(layer, source)
    return settings, ({} if preset else {"preset": name}) | derived
