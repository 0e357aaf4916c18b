"""Labels that come later: how well they are found without training, and what the others lose by them.

One label in ten is held out of training and added to the trained model, with no, one or four example queries. Judged
among all labels: R@10 and P@1 of the held-out labels on the test queries that have one, and the same for the others.
"""

from __future__ import annotations

import dataclasses
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..data.corpus import Corpus, Split
from ..errors import UserError
from ..evaluation.evaluate import meet, predict_split
from ..evaluation.hits import IntArray
from ..evaluation.metrics import RankingMetrics
from ..evaluation.table import aligned
from ..evaluation.zero_shot import zero_shot
from ..model.model import PrimeModel
from ..training.resolve import resolve
from .compare import OUT, PRINT
from .comparison import RUNNING, Say
from .field import Field, Row
from .held_out import HeldOut
from .provenance import commit, corpus_key, retold, row_key
from .reading import load_corpus, named_values
from .recipe import Recipe
from .registry import find_method
from .task import Task

UNSEEN = "unseen.json"
METHODS = ("prime-softmax", "ngame")
EXAMPLES = (0, 1, 4)
MEASURES = ("new R@10", "new P@1", "old R@10", "old P@1")


def unseen(
    data: str | Path | Corpus,
    methods: Sequence[str] = METHODS,
    *,
    out: str | Path = OUT,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    quiet: bool = False,
    say: Say = PRINT,
) -> list[Row]:
    """Rows in unseen.json under `out`, as soon as they are measured; what is there from the same settings stays.

    Beside the methods (ours alone) the encoder without training; and the first one trained on all labels.
    """
    recipes = [_recipe(name) for name in methods]
    values = named_values(config, settings or {})
    corpus = data if isinstance(data, Corpus) else load_corpus(data, preset, values)
    field = Field(Path(out), UNSEEN)
    task = _task(corpus, preset, values, field.directory / RUNNING, quiet=quiet)
    told = retold(corpus.name if isinstance(data, Corpus) else str(data), None, preset, config, settings or {})
    command = shlex.join([*told, "--unseen", "--methods", ",".join(methods)])
    shared = {"data": corpus.name, "seed": task.seed, "commit": commit(), "command": command}
    rows: list[Row] = []
    for part in _parts(recipes, task, HeldOut.of(corpus, task.seed), corpus_key(corpus)):
        for row in _measured(part, shared, field):
            rows.append(row)
            say(f"{row['method']}, {row['new labels']}: " + "  ".join(f"{m} {row[m]:.1f}" for m in MEASURES))
    say(f"\n{corpus.name}, in percent:\n\n{_table(rows)}\n\nThe rows are in {field.path}.")
    shutil.rmtree(_place(task, corpus_key(corpus)), ignore_errors=True)
    return rows


def _task(corpus: Corpus, preset: str | None, values: Mapping[str, Any], place: Path, *, quiet: bool) -> Task:
    settings, _ = resolve(corpus, preset, None, values)
    seed = settings.training.seed
    return Task(
        corpus=corpus,
        settings=settings,
        preset=preset,
        values=values,
        seed=seed,
        place=place,
        checkout=None,
        quiet=quiet,
    )


def _place(task: Task, data_key: str) -> Path:
    """Of what is trained on the way."""
    return task.place / f"unseen-{data_key[:8]}"


def _measured(part: Part, shared: Row, field: Field) -> Iterator[Row]:
    """A part's rows: those of the field where all are there, else new ones, each kept as soon as it is measured."""
    there = [row for row in field.rows() if row.get("part") == part.key]
    complete = len(there) == part.num_rows
    for row in there if complete else part.rows:
        whole = shared | row | {"part": part.key, "key": f"{part.key} {row['new labels']}"}
        if not complete:
            field.add(whole)
        yield whole


def _recipe(name: str) -> Recipe:
    method = find_method(name)
    if not isinstance(method, Recipe):
        raise UserError(f"{name}: --unseen compares methods of ours, that labels can be added to; this is none.")
    return method


class Part(NamedTuple):
    """Rows that are measured together, when they are asked for; how many, and the key of all that they depend on."""

    rows: Iterator[Row]
    num_rows: int
    key: str


def _parts(recipes: Sequence[Recipe], task: Task, held_out: HeldOut, data_key: str) -> Iterator[Part]:

    def key(kind: str, name: str, settings: Mapping[str, Any]) -> str:
        return row_key(data_key, f"unseen {name}", kind, task.seed, settings)

    place = _place(task, data_key)
    untrained = key("untrained", "zero-shot", task.judging | {"encoder": task.settings.encoder})
    yield Part(_untrained(task, held_out), 1, untrained)
    for number, recipe in enumerate(recipes):
        known = dataclasses.replace(task, corpus=held_out.known, place=place / f"{recipe.name}-known")
        added = key("added", recipe.name, recipe.plan(known).settings)
        yield Part(_added(recipe, known, held_out), 1 + len(EXAMPLES), added)
        if number == 0:
            everything = dataclasses.replace(task, place=place / f"{recipe.name}-all")
            retrained = key("all", recipe.name, recipe.plan(task).settings)
            yield Part(_retrained(recipe, everything, held_out), 1, retrained)


def _untrained(task: Task, held_out: HeldOut) -> Iterator[Row]:
    """The encoder as it comes, over all label texts."""
    queries = held_out.corpus.split("test")
    ids_QK = zero_shot(task.settings, held_out.corpus.labels, queries)
    yield {"method": "zero-shot", "new labels": "by their texts"} | judged(ids_QK, queries, held_out)


def _added(recipe: Recipe, task: Task, held_out: HeldOut) -> Iterator[Row]:
    """A model that was trained without them: before they come, and after, with so many examples."""
    model = recipe.trained(task)
    row = _row(recipe, model)
    yield row | {"new labels": "not added"} | judged_model(model, held_out)
    uids, texts = held_out.uids_and_texts()
    for examples in EXAMPLES:
        started = time.perf_counter()
        model.add_labels(texts, uids, queries=held_out.examples(examples))
        added_s = round(time.perf_counter() - started, 2)
        yield row | {"new labels": f"{examples} examples", "add_s": added_s} | judged_model(model, held_out)
        model.remove_labels(uids)


def _retrained(recipe: Recipe, task: Task, held_out: HeldOut) -> Iterator[Row]:
    model = recipe.trained(task)
    yield _row(recipe, model) | {"new labels": "trained on them"} | judged_model(model, held_out)


def _row(recipe: Recipe, model: PrimeModel) -> Row:
    settings = model.settings.prototypes
    dropped = {"drop_centroid": settings.drop_centroid, "drop_free_vector": settings.drop_free_vector}
    facts = {name: model.facts[name] for name in ("epochs", "train_s")}
    return {"method": recipe.name, "mode": model.mode_in_use, **facts, **(dropped if settings.enabled else {})}


def judged_model(model: PrimeModel, held_out: HeldOut) -> dict[str, float]:
    queries = held_out.corpus.split("test")
    meeting = meet(model.labels, held_out.corpus.labels)
    own_id = np.full(meeting.num_labels + 1, -1, dtype=np.int64)  # from the model's ids; -1, its last, stays -1
    own_id[meeting.model_id_L] = np.arange(len(held_out.corpus.labels))
    return judged(np.concatenate([own_id[ids] for _, ids in predict_split(model, queries, meeting)]), queries, held_out)


def judged(ids_QK: IntArray, queries: Split, held_out: HeldOut) -> dict[str, float]:
    """R@10 and P@1 in percent of held-out and of other labels, each over the queries that have one."""
    is_held_L, scores = held_out.is_held_L, dict[str, float]()
    for name, wanted_L in (("new", is_held_L), ("old", ~is_held_L)):
        positives = csr_matrix(queries.positives.multiply(wanted_L[None]))
        positives.eliminate_zeros()
        rows = np.flatnonzero(np.diff(positives.indptr) > 0)
        if len(rows) == 0:
            raise UserError(f"{held_out.corpus.name}: no test query has one of the {name} labels.")
        metrics = RankingMetrics(np.ones(len(wanted_L)))
        metrics.update(ids_QK[rows], positives[rows])
        result = metrics.result()
        scores |= {f"{name} {measure}": round(result[measure], 3) for measure in ("R@10", "P@1")}
        scores[f"{name} queries"] = len(rows)
    return scores


def _table(rows: Sequence[Row]) -> str:
    lines = [[row["method"], row["new labels"], *(f"{row[measure]:.1f}" for measure in MEASURES)] for row in rows]
    return aligned([["", "new labels", *MEASURES], *lines])
