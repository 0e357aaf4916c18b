"""What one call of compare() makes, part by part: a recipe on a data set. Run alone or side by side, then told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .comparison import Comparison, Job, Say
from .details import read_details, write_details
from .experiment import Experiment
from .report import drawn, write_comparison_report
from .side_by_side import run_side_by_side
from .table import comparison_table
from .warm import keep_tokens


@dataclass(frozen=True)
class Part:
    """One experiment on one corpus, and what it is to make."""

    experiment: Experiment | None
    comparison: Comparison
    jobs: Sequence[Job]


def run_parts(parts: Sequence[Part], num_processes: int, deadline: float, say: Say) -> list[str]:
    """What failed; alone a failure ends it all."""
    if num_processes > 1:
        missing = _missing(parts)
        keep_tokens([job for _, job in missing])
        return run_side_by_side([part.comparison for part in parts], missing, num_processes, deadline, say)
    left = sum(part.comparison.run(part.jobs, deadline) for part in parts)
    if left:
        say(f"Time is up: {left} runs were not begun; the same command goes on with them.")
    return []


def _missing(parts: Sequence[Part]) -> list[tuple[int, Job]]:
    """With the number of their part; what several experiments have in common is one run."""
    missing: dict[str, tuple[int, Job]] = {}
    for number, part in enumerate(parts):
        there = {str(row.get("key")) for row in part.comparison.field.rows()}
        for job in part.jobs:
            if not set(job.keys.values()) <= there:
                missing.setdefault(str(job.task.place), (number, job))
    return list(missing.values())


def conclude(parts: Sequence[Part], say: Say) -> None:
    """Tables on the screen, and the report."""
    for part in parts:
        corpus = part.comparison.corpus
        title = corpus.name if part.experiment is None else f"{corpus.name}, {part.experiment.name}"
        rows = comparison_table(part.comparison.rows(part.jobs))
        say(f"\n{title}: {len(corpus.split('test')):,} test queries, in percent:\n\n{rows}")
    field = parts[0].comparison.field
    write_comparison_report(field.directory)
    say(f"\nThe rows are in {field.path}; report.html beside it shows them.")


def write_recipe(part: Part) -> None:
    """For the report: how it is drawn, and which rows are its own on each data set.

    A part of its methods adds to what there is; all of them take its place.
    """
    if part.experiment is None:
        return
    directory, name = part.comparison.field.directory, f"recipe-{part.experiment.name}"
    keys, data = read_details(directory, name).get("keys", {}), part.comparison.corpus.name
    whole = len({job.method.name for job in part.jobs}) == len(part.experiment.methods)
    own = [key for job in part.jobs for key in job.keys.values()]
    keys[data] = own if whole else list(dict.fromkeys([*keys.get(data, []), *own]))
    write_details(directory, name, {**drawn(part.experiment), "keys": keys})
