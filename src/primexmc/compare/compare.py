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
from .costs import step_costs
from .details import write_details
from .experiment import Experiment, load_experiment
from .field import Field, Row
from .peer import find_checkout
from .provenance import corpus_key, retold
from .recipe import Recipe
from .registry import find_method, modes_of
from .report import drawn, write_comparison_report
from .table import comparison_table
from .task import Method

OUT = Path("primexmc-compare")
PRINT: Say = functools.partial(print, flush=True)


def compare(
    data: str | Path | Corpus,
    methods: Sequence[str | Method] | None = None,
    *,
    recipe: str | None = None,
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

    `recipe` names an experiment with methods of its own, of which `methods` may choose some. `settings` win over
    `config`, both win over the method's own, and those over the preset. A method is a name or anything with the surface
    of `Method`. `checkout` is the repository with the peers' environments.
    """
    experiment = None if recipe is None else load_experiment(recipe)
    chosen = [(method, modes_of(method, modes)) for method in _chosen(methods, experiment)]
    if not chosen or seeds < 1:
        raise UserError("compare needs at least one method and one seed.")
    values = {**(experiment.settings if experiment else {}), **named_values(config, settings or {})}
    corpus = data if isinstance(data, Corpus) else load_corpus(data, preset, values)
    base, _ = resolve(corpus, preset, None, values)
    comparison = Comparison(
        corpus=corpus,
        data_key=corpus_key(corpus),
        settings=base,
        preset=preset,
        values=values,
        field=Field(Path(out)),
        checkout=checkout or find_checkout(),
        command=retold(corpus.name if isinstance(data, Corpus) else str(data), recipe, preset, config, settings or {}),
        quiet=quiet,
        say=say,
    )
    rows = comparison.run(chosen, range(base.training.seed, base.training.seed + seeds))
    say(f"\n{corpus.name}: {len(corpus.split('test')):,} test queries, in percent:\n\n{comparison_table(rows)}")
    if experiment is not None:
        write_details(comparison.field.directory, f"recipe-{experiment.name}", drawn(experiment))
    write_comparison_report(comparison.field.directory)
    say(f"\nThe rows are in {comparison.field.path}; report.html beside it shows them.")
    return rows


def costs(
    data: str | Path | Corpus,
    methods: Sequence[str | Method] | None = None,
    *,
    recipe: str | None = None,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, int]]:
    """What a training step of each method costs, by name; nothing is trained. Methods of others are left out."""
    experiment = None if recipe is None else load_experiment(recipe)
    values = {**(experiment.settings if experiment else {}), **named_values(config, settings or {})}
    corpus = data if isinstance(data, Corpus) else load_corpus(data, preset, values)
    ours = [method for method in _chosen(methods, experiment) if isinstance(method, Recipe)]
    return {method.name: step_costs(corpus, method.resolved(corpus, preset, values)) for method in ours}


def _chosen(methods: Sequence[str | Method] | None, experiment: Experiment | None) -> list[Method]:
    if experiment is None:
        return _found(methods or ())
    return experiment.chosen(None if methods is None else [str(method) for method in methods])


def _found(methods: Sequence[str | Method]) -> list[Method]:
    """Each once."""
    found = [find_method(method) if isinstance(method, str) else method for method in methods]
    return list({method.name: method for method in found}.values())


def named_values(config: str | Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted key; checked before anything is read."""
    values: dict[str, Any] = {}
    if config is not None:
        content = read_toml(Path(config))
        Settings().with_values(content, str(config))
        values |= dict(flatten(content))
    Settings().with_values(settings, "settings")
    return values | dict(flatten(settings))


def load_corpus(data: str | Path, preset: str | None, values: Mapping[str, Any]) -> Corpus:
    """Read as the preset and the user say; a method does not choose how the data is read."""
    settings = Settings() if preset is None else Settings().with_values(load_preset(preset), f"preset {preset}")
    corpus = Corpus.load(data, settings=settings.with_values(values, "settings").data)
    for name in ("train", "test"):
        corpus.split(name)
    return corpus
