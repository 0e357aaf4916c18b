"""What processes side by side would all make at their start is made once, before: the tokens of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.encoder import load_encoder
from ..training.data import prepare
from .comparison import Job
from .recipe import Recipe


def keep_tokens(jobs: Sequence[Job]) -> None:
    """In the cache, once for each way in which methods of ours read a corpus."""
    seen = set[Any]()
    for job in jobs:
        if not isinstance(job.method, Recipe):
            continue
        settings = job.method.settings(job.task)
        reading = (id(job.task.corpus), settings.data, settings.encoder)
        if reading not in seen:
            seen.add(reading)
            prepare(job.task.corpus, job.task.corpus.split("train"), load_encoder(settings.encoder), settings)
