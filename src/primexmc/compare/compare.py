"""compare(): methods side by side on one corpus, a row for each in field.json."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.corpus import Corpus
from ..errors import UserError
from ..training.resolve import resolve
from .comparison import Comparison, Say
from .costs import step_costs
from .experiment import Experiment, load_experiment
from .field import Field, Row
from .parts import Part, conclude, run_parts, write_recipe
from .peer import find_checkout
from .provenance import retold
from .reading import Data, Reader, load_corpus, named_values
from .recipe import Recipe
from .registry import find_method, modes_of
from .task import Method

OUT = Path("primexmc-compare")
PRINT: Say = functools.partial(print, flush=True)


def compare(
    data: Data | Sequence[Data],
    methods: Sequence[str | Method] | None = None,
    *,
    recipe: str | Sequence[str] | None = None,
    out: str | Path = OUT,
    modes: Sequence[str] = ("theta",),
    seeds: int = 1,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int = 1,
    minutes: float = math.inf,
    checkout: Path | None = None,
    quiet: bool = False,
    say: Say = PRINT,
) -> list[Row]:
    """Trains and evaluates each method on the test split; what `out` has from the same settings is not made again.

    `recipe` names an experiment with methods of its own, of which `methods` may choose some; or several, which are made
    one after the other, each for all of `data`. `settings` win over `config`, both win over the method's own, and those
    over the preset. A method is a name or anything with the surface of `Method`. `jobs` processes work side by side: a
    run that fails is said at the end and stops no other. No run begins after so many `minutes`. `checkout` is the
    repository with the peers' environments.
    """
    deadline = time.perf_counter() + 60 * minutes
    experiments: list[Experiment | None] = [load_experiment(name) for name in _listed(recipe)] or [None]
    chosen = [[(method, modes_of(method, modes)) for method in _chosen(methods, one)] for one in experiments]
    if not all(chosen) or min(seeds, jobs) < 1:
        raise UserError("compare needs at least one method, one seed and one job.")
    named, reader, field = named_values(config, settings or {}), Reader(preset), Field(Path(out))

    def comparison(one: Data, experiment: Experiment | None) -> Comparison:
        values = {**(experiment.settings if experiment else {}), **named}
        corpus, data_key = reader.read(one, values)
        name = corpus.name if isinstance(one, Corpus) else str(one)
        return Comparison(
            corpus=corpus,
            data_key=data_key,
            settings=resolve(corpus, preset, None, values)[0],
            preset=preset,
            values=values,
            field=field,
            checkout=checkout or find_checkout(),
            command=retold(name, None if experiment is None else experiment.source, preset, config, settings or {}),
            quiet=quiet,
            say=say,
        )

    parts = [
        Part(experiment, made, made.jobs(picked, seeds))
        for experiment, picked in zip(experiments, chosen, strict=True)
        for made in [comparison(one, experiment) for one in _listed(data)]
    ]
    for part in parts:
        write_recipe(part)
    failures = run_parts(parts, jobs, deadline, say)
    conclude(parts, say)
    if failures:
        raise UserError(f"{len(failures)} runs failed; all others are there:\n  " + "\n  ".join(failures))
    return [row for part in parts for row in part.comparison.rows(part.jobs)]


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


def _listed(value: Any) -> list[Any]:
    return [] if value is None else [value] if isinstance(value, (str, Path, Corpus)) else list(value)


def _chosen(methods: Sequence[str | Method] | None, experiment: Experiment | None) -> list[Method]:
    if experiment is None:
        return _found(methods or ())
    return experiment.chosen(None if methods is None else [str(method) for method in methods])


def _found(methods: Sequence[str | Method]) -> list[Method]:
    """Each once."""
    found = [find_method(method) if isinstance(method, str) else method for method in methods]
    return list({method.name: method for method in found}.values())
