"""Simple methods that every comparison can have: popularity, tf-idf neighbours, and the encoder without training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config import flatten
from ..evaluation.baselines import popularity, tfidf_neighbours
from ..evaluation.evaluate import score
from ..evaluation.hits import IntArray
from ..evaluation.zero_shot import zero_shot
from .measure import samples_from
from .task import NO_MODE, Outcome, Plan, Task


@dataclass(frozen=True)
class SimpleMethod:
    """A function from the task to ranked label ids."""

    name: str
    predict: Callable[[Task], IntArray]
    reads: str  # "nothing", "whole texts" or "first tokens"
    modes: tuple[str, ...] = (NO_MODE,)
    seeded: bool = False

    def plan(self, task: Task) -> Plan:
        if self.reads != "first tokens":
            return Plan(settings=task.judging, text_len="whole" if self.reads == "whole texts" else "-")
        encoder, tokens = Path(task.settings.encoder.name).name, task.settings.data.query_tokens
        sections = {name: task.settings.to_dict()[name] for name in ("encoder", "data")}
        settings = {**dict(flatten(sections)), **task.judging, "encoder.name": encoder}
        return Plan(settings=settings, encoder=encoder, text_len=tokens)

    def check(self, task: Task) -> None:
        pass

    def run(self, task: Task, modes: Sequence[str]) -> Outcome:
        started = time.perf_counter()
        pred_ids = self.predict(task)
        seconds = time.perf_counter() - started
        corpus = task.corpus
        scores = score(pred_ids, corpus.split("test"), corpus.split("train"), task.settings.data)
        samples = {NO_MODE: samples_from(pred_ids, corpus)}
        return Outcome(scores={NO_MODE: scores}, train_s=0.0, more={"predict_s": round(seconds, 1)}, samples=samples)


def _popularity(task: Task) -> IntArray:
    return popularity(task.corpus.split("train"), task.corpus.split("test"), task.settings.search.top)


def _tfidf(task: Task) -> IntArray:
    return tfidf_neighbours(task.corpus.split("train"), task.corpus.split("test"), task.settings.search.top)


def _zero_shot(task: Task) -> IntArray:
    return zero_shot(task.settings, task.corpus.labels, task.corpus.split("test"))


SIMPLE = {
    method.name: method
    for method in (
        SimpleMethod("popularity", _popularity, "nothing"),
        SimpleMethod("tfidf-neighbours", _tfidf, "whole texts"),
        SimpleMethod("zero-shot", _zero_shot, "first tokens"),
    )
}
