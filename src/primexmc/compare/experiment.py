"""Recipes: experiments one can read, run and draw. A TOML file with methods, and variants of one method by name.

    base = "prime-lite"                 the method that variants change, and what they are compared with
    methods = ["prime"]                 methods as they are

    [[variants]]
    name = "no regulariser"
    "loss.regulariser_weight" = 0.0

    [[grids]]                           a variant for each combination of the lists
    name = "{prototypes.num_free_vectors} free vectors"
    "prototypes.num_free_vectors" = [1024, 4096]

A variant may name another `method`; `line` says to which line of the chart it belongs;
`[chart] lines` says it of methods as they are. `[settings]` hold for all.
`[[claims]]` say what is to come out (verdicts.py).
"""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from ..config import Settings, flatten, read_toml
from ..errors import UserError, did_you_mean
from .recipe import Recipe
from .registry import find_method
from .task import Method
from .verdicts import Claim

KNOWN = ("title", "base", "methods", "settings", "variants", "grids", "chart", "claims")
CHART = ("x", "y", "lines", "log")


@dataclass(frozen=True)
class Experiment:
    """Its methods by name, and how it is drawn."""

    name: str
    title: str
    methods: Sequence[Method]
    settings: Mapping[str, Any] = field(default_factory=dict)  # for every method; what the user names wins
    lines: Mapping[str, str] = field(default_factory=dict)  # of the chart, by method
    chart: Mapping[str, Any] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    source: str = ""  # as it was named

    def chosen(self, names: Sequence[str] | None) -> list[Method]:
        """Those of these names; all without names."""
        if names is None:
            return list(self.methods)
        by_name = {method.name: method for method in self.methods}
        for name in names:
            if name not in by_name:
                hint = did_you_mean(name, by_name)
                raise UserError(f'recipe {self.name} has no "{name}".{hint} There are: {", ".join(by_name)}.')
        return [by_name[name] for name in names]


def recipe_names() -> list[str]:
    """Those of the package."""
    folder = resources.files("primexmc.compare") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_experiment(source: str) -> Experiment:
    """From the package by name, or from a file."""
    if source in recipe_names():
        text = (resources.files("primexmc.compare") / "recipes" / f"{source}.toml").read_text(encoding="utf-8")
        return _from_content(source, tomllib.loads(text), f"recipe {source}", source)
    if not source.endswith(".toml"):
        hint = did_you_mean(source, recipe_names())
        raise UserError(
            f'there is no recipe "{source}".{hint} There are: {", ".join(recipe_names())}; or a file (*.toml).'
        )
    return _from_content(Path(source).stem, read_toml(Path(source)), source, source)


def _from_content(name: str, content: Mapping[str, Any], source: str, named: str) -> Experiment:
    for key in content:
        if key not in KNOWN:
            raise UserError(f'{source}: "{key}" is nothing that a recipe has.{did_you_mean(key, KNOWN)}')
    settings = dict(flatten(content.get("settings", {})))
    Settings().with_values(settings, source)
    methods, lines = [find_method(plain) for plain in content.get("methods", ())], {}
    base = content.get("base")
    if base is not None:
        methods.insert(0, find_method(base))
    for variant in [*content.get("variants", ()), *_grid_variants(content.get("grids", ()), source)]:
        method, line = _variant(variant, base, source)
        methods.append(method)
        lines[method.name] = line or str(base or "")
    twice = {method.name for method in methods if [other.name for other in methods].count(method.name) > 1}
    if not methods or twice:
        raise UserError(f"{source}: " + (f'two methods are named "{min(twice)}".' if twice else "no method in it."))
    chart = content.get("chart", {})
    for key in chart:
        if key not in CHART:
            raise UserError(f"{source}: [chart] has {', '.join(CHART)}, not {key}.")
    claims = [Claim.of(claim, [method.name for method in methods], source) for claim in content.get("claims", ())]
    lines |= chart.get("lines", {})
    return Experiment(name, content.get("title", name), methods, settings, lines, chart, claims, named)


def _variant(variant: Mapping[str, Any], base: str | None, source: str) -> tuple[Method, str | None]:
    values = dict(variant)
    name, method = str(values.pop("name", "")), values.pop("method", base)
    line, times = values.pop("line", None), values.pop("times", {})
    if not name or "," in name or method is None:
        raise UserError(
            f"{source}: a variant has a name without commas, and a method or the recipe a base; not {name!r}."
        )
    found = find_method(method)
    if not isinstance(found, Recipe):
        raise UserError(f"{source}: {name} varies {method}, which is not trained by this package.")
    own = dict(flatten(values))
    Settings().with_values({**found.values, **own}, f"{source}, {name}")
    return dataclasses.replace(found, name=name, values={**found.values, **own}, times={**found.times, **times}), line


def _grid_variants(grids: Sequence[Mapping[str, Any]], source: str) -> Iterator[dict[str, Any]]:
    for grid in grids:
        lists = {key: values for key, values in grid.items() if isinstance(values, list)}
        fixed = {key: value for key, value in grid.items() if key not in lists}
        for values in itertools.product(*lists.values()):
            chosen = dict(zip(lists, values, strict=True))
            name = str(grid.get("name", ""))
            for key, value in chosen.items():
                if "{" + key + "}" not in name:
                    raise UserError(
                        f'{source}: the grid\'s name "{name}" needs {{{key}}} in it, to tell its variants apart.'
                    )
                name = name.replace("{" + key + "}", str(value))
            yield {**fixed, **chosen, "name": name}
