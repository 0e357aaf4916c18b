"""compare(): methods side by side on one corpus, a row for each in field.json."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..config import Settings, flatten, read_toml
from ..data.corpus import Corpus
from ..errors import UserError
from ..training.resolve import resolve
from .field import Field, Row
from .peer import find_checkout
from .provenance import commit, corpus_key, row_key
from .registry import find_method, modes_of
from .table import comparison_table
from .task import Method, Outcome, Plan, Task

MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@10", "R@100")
RUNNING = ".running"
Say = Callable[[str], None]


def compare(
    data: str | Path | Corpus,
    methods: Sequence[str],
    *,
    out: str | Path,
    modes: Sequence[str] = ("theta",),
    seeds: int = 1,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    checkout: Path | None = None,
    quiet: bool = False,
    say: Say = print,
) -> list[Row]:
    """Trains and evaluates each method on the test split; rows that `out` has from the same settings are taken as
    they are. `settings` win over `config`, both win over the method's own, and those over the preset."""
    chosen = [(method, modes_of(method, modes)) for method in map(find_method, dict.fromkeys(methods))]
    if not chosen or seeds < 1:
        raise UserError("compare needs at least one method and one seed.")
    values = _named(config, settings or {})
    corpus = data if isinstance(data, Corpus) else _load(data, preset, values)
    corpus.split("train"), corpus.split("test")
    base, _ = resolve(corpus, preset, None, values)
    comparison = _Comparison(
        corpus, base, preset, values, Path(out), checkout or find_checkout(), _retold(data, preset, config, settings)
    )
    seed_range = range(base.training.seed, base.training.seed + seeds)
    tasks = [
        (method, its_modes, comparison.task(method, seed, quiet))
        for method, its_modes in chosen
        for seed in (seed_range if method.seeded else seed_range[:1])
    ]
    plans = [method.plan(task) for method, _, task in tasks]  # what cannot run is said before anything slow begins
    rows = [
        row
        for (method, its_modes, task), plan in zip(tasks, plans, strict=True)
        for row in comparison.rows(method, its_modes, task, plan, say)
    ]
    say(f"\n{corpus.name}: {len(corpus.split('test')):,} test queries, in percent:\n\n{comparison_table(rows)}")
    say(f"\nThe rows are in {comparison.field.path}.")
    return rows


class _Comparison:
    """One call of `compare`."""

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        preset: str | None,
        values: dict[str, Any],
        out: Path,
        checkout: Path | None,
        command: list[str],
    ) -> None:
        self.corpus, self.settings, self.preset, self.values = corpus, settings, preset, values
        self.out, self.checkout, self.command = out, checkout, command
        self.field, self.data_key = Field(out), corpus_key(corpus)

    def task(self, method: Method, seed: int, quiet: bool) -> Task:
        return Task(
            corpus=self.corpus,
            settings=self.settings,
            preset=self.preset,
            values=self.values,
            seed=seed,
            place=self.out / RUNNING / f"{self.corpus.name}-{method.name}-{seed}",
            checkout=self.checkout,
            quiet=quiet,
        )

    def rows(self, method: Method, modes: Sequence[str], task: Task, plan: Plan, say: Say) -> list[Row]:
        """From field.json where they are all there, else measured and written."""
        keys = {mode: row_key(self.data_key, method.name, mode, task.seed, plan.settings) for mode in modes}
        found = {mode: self.field.find(key) for mode, key in keys.items()}
        missing = [mode for mode, row in found.items() if row is None]
        if missing:
            say(f"{method.name}, seed {task.seed}:")
            outcome = method.run(task, missing)
            for mode in missing:
                found[mode] = self._row(method, mode, keys[mode], task, plan, outcome)
                self.field.add(found[mode] or {})
            _clear(task.place)
        else:
            say(f"{method.name}, seed {task.seed}: is in {self.field.path} already.")
        return [row for row in found.values() if row is not None]

    def _row(self, method: Method, mode: str, key: str, task: Task, plan: Plan, outcome: Outcome) -> Row:
        test = self.corpus.split("test")
        scores = outcome.scores[mode]
        return {
            "data": self.corpus.name,
            "encoder": plan.encoder,
            "text_len": plan.text_len,
            "method": method.name,
            "mode": mode,
            "seed": task.seed,
            "filtered": test.filtered is not None,
            "chosen_on": outcome.chosen_on,
            **{name: round(scores[name], 3) for name in MEASURES if name in scores},
            "train_s": round(outcome.train_s, 1),
            **outcome.more,
            "commit": commit(),
            "command": self._command(method, mode, task),
            "settings": dict(plan.settings),
            "key": key,
        }

    def _command(self, method: Method, mode: str, task: Task) -> str:
        """What makes this row alone."""
        words = [*self.command, "--methods", method.name]
        words += ["--modes", mode] if mode not in ("-", "theta") else []
        return shlex.join(words + (["--set", f"training.seed={task.seed}"] if task.seed else []))


def _named(config: str | Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted key; checked before anything is read."""
    values: dict[str, Any] = {}
    if config is not None:
        Settings().with_values(read_toml(Path(config)), str(config))
        values |= dict(flatten(read_toml(Path(config))))
    Settings().with_values(settings, "settings")
    return values | dict(flatten(settings))


def _load(data: str | Path, preset: str | None, values: Mapping[str, Any]) -> Corpus:
    """Read as the preset and the user say; a method does not choose how the data is read."""
    from ..presets import load_preset

    settings = Settings() if preset is None else Settings().with_values(load_preset(preset), f"preset {preset}")
    return Corpus.load(data, settings=settings.with_values(values, "settings").data)


def _retold(
    data: str | Path | Corpus, preset: str | None, config: str | Path | None, settings: Mapping[str, Any] | None
) -> list[str]:
    """The command line of this call without methods and seeds."""
    words = ["primexmc", "compare", data.name if isinstance(data, Corpus) else str(data)]
    words += ["--preset", preset] if preset else []
    words += ["--config", str(config)] if config else []
    for key, value in flatten(settings or {}):
        if key != "training.seed":
            words += ["--set", f"{key}={_as_text(value)}"]
    return words


def _as_text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value)


def _clear(place: Path) -> None:
    """What a method kept while it ran; and the directory above when it was the last."""
    shutil.rmtree(place, ignore_errors=True)
    if place.parent.is_dir() and not any(place.parent.iterdir()):
        place.parent.rmdir()
