"""What a trained model costs: memory of its training, size on disk, time to answer one query."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..data.corpus import Corpus
from ..evaluation.evaluate import meet
from ..evaluation.samples import SampledAnswer, sample_rows, sampled_answer
from ..model.model import PrimeModel
from ..training.log import peak_memory_gib
from ..training.place import FOLDER, METRICS

NUM_TIMED, NUM_WARMING = 40, 5
NUM_SAMPLES, NUM_NAMED = 8, 5
ALSO_THERE = {"metrics.jsonl"}  # in the directory, and no part of the model


def forget_peak() -> None:
    """From now on the peak is that of what follows: on a GPU always, on the CPU where Linux lets us."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass


def costs_of(model: PrimeModel, place: Path, corpus: Corpus) -> dict[str, Any]:
    """`peak_gib` of training (of the process on a CPU, of the GPU's memory else), `model_mb`, `predict_ms`."""
    peaks = [row["memory_gib"] for row in training_log(place) if "memory_gib" in row]
    return {
        "peak_gib": round(max([*peaks, peak_memory_gib(model.device)]), 2),
        "model_mb": round(model_bytes(place) / 1e6, 1),
        "predict_ms": round(milliseconds_of_one(model, corpus.split("test").texts), 2),
    }


def training_log(place: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl."""
    file = place / METRICS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def learning_curve(log: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a report draws of it: validation by epoch and by seconds of training, of the run that chooses."""
    kept = ("run", "epoch", "seconds", "P@1", "P@5", "nDCG@5", "PSP@5")
    return [{name: row[name] for name in kept if name in row} for row in log if row.get("phase") == "validation"]


def classifier_seconds(log: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """`classifier_s`: how much of the training's time its classifier took; nothing where there is none."""
    rows = [row for row in log if row.get("phase") == "classifier"]
    last = max((row["epoch"] for row in rows), default=0)
    return {"classifier_s": round(sum(row["seconds"] for row in rows if row["epoch"] == last), 1)} if rows else {}


def model_bytes(place: Path) -> int:
    files = [file for file in place.rglob("*") if file.is_file() and FOLDER not in file.parts]
    return sum(file.stat().st_size for file in files if file.name not in ALSO_THERE)


def milliseconds_of_one(model: PrimeModel, texts: Sequence[str]) -> float:
    """The median time from one text to its five best labels, alone in its batch."""
    taken = []
    for number in range(min(NUM_TIMED + NUM_WARMING, max(len(texts), 1))):
        started = time.perf_counter()
        model.rank([texts[number]], NUM_NAMED)
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken[NUM_WARMING:] or taken)


def samples_of(model: PrimeModel, corpus: Corpus) -> list[SampledAnswer]:
    """What the model names for the sampled test queries."""
    queries = corpus.split("test")
    rows = sample_rows(queries, NUM_SAMPLES)
    if not rows:
        return []
    assert meet(model.labels, corpus.labels).num_labels == len(corpus.labels), "trained on this corpus"
    filtered = None if queries.filtered is None else queries.filtered[rows]
    ids_QK, _ = model.rank([queries.texts[row] for row in rows], NUM_NAMED, filtered)
    return [sampled_answer(queries, corpus.labels, row, ids) for row, ids in zip(rows, ids_QK, strict=True)]


def samples_from(pred_ids: Any, corpus: Corpus) -> list[SampledAnswer]:
    """The same of predictions for all test queries."""
    queries = corpus.split("test")
    return [
        sampled_answer(queries, corpus.labels, row, pred_ids[row][:NUM_NAMED])
        for row in sample_rows(queries, NUM_SAMPLES)
    ]
