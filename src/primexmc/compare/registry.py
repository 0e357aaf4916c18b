"""Methods by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config import read_toml
from ..errors import UserError, did_you_mean
from ..fusion.blend import MODES
from .methods import file_names, load_file
from .peer import Peer
from .recipe import Recipe
from .simple import SIMPLE
from .task import NO_MODE, Method

TOML = ".toml"


def method_names() -> list[str]:
    return sorted([*file_names(), *SIMPLE])


def find_method(name: str) -> Method:
    """The method of this name or in this TOML file; an error that names the nearest when there is none."""
    if name in SIMPLE:
        return SIMPLE[name]
    if name.endswith(TOML):
        return Recipe.from_file(Path(name).name.removesuffix(TOML), over_base(read_toml(Path(name)), name))
    if name not in file_names():
        names = method_names()
        raise UserError(f'there is no method "{name}".{did_you_mean(name, names)} There are: {", ".join(names)}.')
    content = over_base(load_file(name), name)
    return Peer.from_file(name, content) if "peer" in content else Recipe.from_file(name, content)


def modes_of(method: Method, wanted: Sequence[str]) -> list[str]:
    """Those of the wanted modes in which the method predicts; a method without modes has its one."""
    for mode in wanted:
        if mode not in MODES:
            raise UserError(f'"{mode}" is no mode.{did_you_mean(mode, MODES)} There are: {", ".join(MODES)}.')
    if method.modes == (NO_MODE,):
        return [NO_MODE]
    missing = [mode for mode in wanted if mode not in method.modes]
    if missing:
        raise UserError(f'{method.name} has no mode "{missing[0]}"; it has: {", ".join(method.modes)}.')
    return list(dict.fromkeys(wanted))


def over_base(content: dict[str, Any], source: str) -> dict[str, Any]:
    """A method's file over the method of ours that it builds on."""
    base = content.pop("base", None)
    if base is None:
        return content
    if base not in file_names():
        raise UserError(f'{source}: there is no method "{base}" to build on.{did_you_mean(str(base), file_names())}')
    merged = over_base(load_file(base), base)
    for key, value in content.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged
