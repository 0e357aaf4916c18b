"""compare(): methods side by side on one corpus, a row for each in field.json."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..config import Settings, flatten, read_toml
from ..data.corpus import Corpus
from ..errors import UserError
from ..presets import load_preset
from ..training.resolve import resolve
from .comparison import Comparison, Say
from .field import Field, Row
from .peer import find_checkout
from .provenance import corpus_key, retold
from .registry import find_method, modes_of
from .table import comparison_table
from .task import Method

OUT = Path("primexmc-compare")
PRINT: Say = functools.partial(print, flush=True)


def compare(
    data: str | Path | Corpus,
    methods: Sequence[str | Method],
    *,
    out: str | Path = OUT,
    modes: Sequence[str] = ("theta",),
    seeds: int = 1,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    checkout: Path | None = None,
    quiet: bool = False,
    say: Say = PRINT,
) -> list[Row]:
    """Trains and evaluates each method on the test split; what `out` has from the same settings is not made again.

    `settings` win over `config`, both win over the method's own, and those over the preset. A method is a name or
    anything with the surface of `Method`. `checkout` is the repository with the peers' environments.
    """
    chosen = [(method, modes_of(method, modes)) for method in _found(methods)]
    if not chosen or seeds < 1:
        raise UserError("compare needs at least one method and one seed.")
    values = _named(config, settings or {})
    corpus = data if isinstance(data, Corpus) else _load(data, preset, values)
    base, _ = resolve(corpus, preset, None, values)
    comparison = Comparison(
        corpus=corpus,
        data_key=corpus_key(corpus),
        settings=base,
        preset=preset,
        values=values,
        field=Field(Path(out)),
        checkout=checkout or find_checkout(),
        command=retold(corpus.name if isinstance(data, Corpus) else str(data), preset, config, settings or {}),
        quiet=quiet,
        say=say,
    )
    rows = comparison.run(chosen, range(base.training.seed, base.training.seed + seeds))
    say(f"\n{corpus.name}: {len(corpus.split('test')):,} test queries, in percent:\n\n{comparison_table(rows)}")
    say(f"\nThe rows are in {comparison.field.path}.")
    return rows


def _found(methods: Sequence[str | Method]) -> list[Method]:
    """Each once."""
    found = [find_method(method) if isinstance(method, str) else method for method in methods]
    return list({method.name: method for method in found}.values())


def _named(config: str | Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted key; checked before anything is read."""
    values: dict[str, Any] = {}
    if config is not None:
        content = read_toml(Path(config))
        Settings().with_values(content, str(config))
        values |= dict(flatten(content))
    Settings().with_values(settings, "settings")
    return values | dict(flatten(settings))


def _load(data: str | Path, preset: str | None, values: Mapping[str, Any]) -> Corpus:
    """Read as the preset and the user say; a method does not choose how the data is read."""
    settings = Settings() if preset is None else Settings().with_values(load_preset(preset), f"preset {preset}")
    corpus = Corpus.load(data, settings=settings.with_values(values, "settings").data)
    for name in ("train", "test"):
        corpus.split(name)
    return corpus
