"""compare(): methods side by side on one corpus, a row for each in field.json."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..config import DataSettings, Settings, flatten, read_toml
from ..data.corpus import Corpus
from ..errors import UserError
from ..presets import load_preset
from ..training.resolve import resolve
from .comparison import Comparison, Job, Say
from .costs import step_costs
from .details import read_details, write_details
from .experiment import Experiment, load_experiment
from .field import Field, Row
from .peer import find_checkout
from .provenance import corpus_key, retold
from .recipe import Recipe
from .registry import find_method, modes_of
from .report import drawn, write_comparison_report
from .side_by_side import run_side_by_side
from .table import comparison_table
from .task import Method
from .warm import keep_tokens

OUT = Path("primexmc-compare")
Data = str | Path | Corpus
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
    shared = _Shared(preset, config, settings or {}, Path(out), checkout or find_checkout(), quiet, say)
    made = [
        Made(experiment, comparison, comparison.jobs(picked, seeds))
        for experiment, picked in zip(experiments, chosen, strict=True)
        for comparison in [shared.comparison(one, experiment) for one in _listed(data)]
    ]
    for part in made:
        _write_recipe(part)
    failures = _run(made, jobs, deadline, say)
    _conclude(made, say)
    if failures:
        raise UserError(f"{len(failures)} runs failed; all others are there:\n  " + "\n  ".join(failures))
    return [row for part in made for row in part.comparison.rows(part.jobs)]


@dataclass(frozen=True)
class _Shared:
    """What the comparisons of one call have in common."""

    preset: str | None
    config: str | Path | None
    settings: Mapping[str, Any]
    out: Path
    checkout: Path | None
    quiet: bool
    say: Say
    corpora: dict[Any, tuple[Corpus, str]] = field(default_factory=dict)  # read already, with their keys

    def comparison(self, data: Data, experiment: Experiment | None) -> Comparison:
        """Of one experiment on one corpus; several experiments mostly read it alike."""
        values = {**(experiment.settings if experiment else {}), **named_values(self.config, self.settings)}
        read_as = (data if isinstance(data, (str, Path)) else id(data), _data_settings(self.preset, values))
        if read_as not in self.corpora:
            corpus = data if isinstance(data, Corpus) else load_corpus(data, self.preset, values)
            self.corpora[read_as] = corpus, corpus_key(corpus)
        corpus, data_key = self.corpora[read_as]
        base, _ = resolve(corpus, self.preset, None, values)
        name = corpus.name if isinstance(data, Corpus) else str(data)
        recipe = None if experiment is None else experiment.source
        return Comparison(
            corpus=corpus,
            data_key=data_key,
            settings=base,
            preset=self.preset,
            values=values,
            field=Field(self.out),
            checkout=self.checkout,
            command=retold(name, recipe, self.preset, self.config, self.settings),
            quiet=self.quiet,
            say=self.say,
        )


@dataclass(frozen=True)
class Made:
    """One experiment on one corpus, and what it is to make."""

    experiment: Experiment | None
    comparison: Comparison
    jobs: Sequence[Job]


def _run(made: Sequence[Made], num_processes: int, deadline: float, say: Say) -> list[str]:
    """What failed; alone a failure ends it all."""
    if num_processes > 1:
        missing = _missing(made)
        keep_tokens([job for _, job in missing])
        return run_side_by_side([part.comparison for part in made], missing, num_processes, deadline, say)
    left = sum(part.comparison.run(part.jobs, deadline) for part in made)
    if left:
        say(f"Time is up: {left} runs were not begun; the same command goes on with them.")
    return []


def _missing(made: Sequence[Made]) -> list[tuple[int, Job]]:
    """With the number of their part; what several experiments have in common is one run."""
    missing: dict[str, tuple[int, Job]] = {}
    for number, part in enumerate(made):
        there = {str(row.get("key")) for row in part.comparison.field.rows()}
        for job in part.jobs:
            if not set(job.keys.values()) <= there:
                missing.setdefault(str(job.task.place), (number, job))
    return list(missing.values())


def _conclude(made: Sequence[Made], say: Say) -> None:
    """Tables on the screen, and the report."""
    for part in made:
        corpus = part.comparison.corpus
        title = corpus.name if part.experiment is None else f"{corpus.name}, {part.experiment.name}"
        rows = comparison_table(part.comparison.rows(part.jobs))
        say(f"\n{title}: {len(corpus.split('test')):,} test queries, in percent:\n\n{rows}")
    field = made[0].comparison.field
    write_comparison_report(field.directory)
    say(f"\nThe rows are in {field.path}; report.html beside it shows them.")


def _write_recipe(part: Made) -> None:
    """For the report: how it is drawn, and which rows are its own on each data set."""
    if part.experiment is None:
        return
    directory, name = part.comparison.field.directory, f"recipe-{part.experiment.name}"
    keys = read_details(directory, name).get("keys", {})
    keys[part.comparison.corpus.name] = [key for job in part.jobs for key in job.keys.values()]
    write_details(directory, name, {**drawn(part.experiment), "keys": keys})


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
    corpus = Corpus.load(data, settings=_data_settings(preset, values))
    for name in ("train", "test"):
        corpus.split(name)
    return corpus


def _data_settings(preset: str | None, values: Mapping[str, Any]) -> DataSettings:
    settings = Settings() if preset is None else Settings().with_values(load_preset(preset), f"preset {preset}")
    return settings.with_values(values, "settings").data
