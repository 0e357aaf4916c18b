"""`primexmc demo`: train on the embedded example, compare with simple methods, show what it predicts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data.corpus import Corpus, Split
from .data.example import example_path
from .evaluation.baselines import popularity, tfidf_neighbours
from .evaluation.evaluate import evaluate, score
from .evaluation.report import Report, Sample, write_report
from .evaluation.samples import sample_rows
from .evaluation.table import format_table
from .evaluation.zero_shot import zero_shot
from .model.model import PrimeModel
from .training.saver import Interrupted
from .training.train import train

PRESET = "static-cpu"
SHORT = {"training.epochs": 12, "training.validate_every": 3, "training.refit": False}  # for patience's sake
NUM_SHOWN, NUM_IN_REPORT = 5, 12
Say = Callable[[str], None]


def run_demo(
    out: str | Path = Path("primexmc-demo"),
    *,
    corpus: Corpus | None = None,
    settings: Mapping[str, Any] | None = None,
    say: Say = print,
) -> dict[str, Any]:
    """Writes `model/`, `evaluation.json` and `report.html` into `out` and gives what stands in the JSON.

    Without a corpus it is the embedded example; `settings` are single values like `{"training.epochs": 3}`.
    """
    place, started = Path(out), time.perf_counter()
    corpus = corpus or Corpus.load(example_path())
    try:
        model = train(corpus, PRESET, SHORT | dict(settings or {}), out=place / "model", overwrite=True)
    except Interrupted:
        raise Interrupted("stopped; the next demo in the same place begins anew.") from None
    train_s = time.perf_counter() - started
    results = {"PRIME": evaluate(model, corpus)} | baseline_results(model, corpus)
    samples = sample_predictions(model, corpus.split("test"), NUM_IN_REPORT)
    say(f"\n{len(corpus.split('test')):,} test queries, in percent:\n\n{format_table(results)}\n")
    say("\n\n".join(_spoken(sample) for sample in samples[:NUM_SHOWN]))
    ours, *others = results.items()
    summary = {**ours[1], "train_s": train_s, "baselines": dict(others)}
    (place / "evaluation.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    write_report(place / "report.html", demo_report(model, corpus, results, samples, place, train_s))
    say(f"\nIn {place}/: the model, evaluation.json, and report.html to look at in a browser.")
    return summary


def baseline_results(model: PrimeModel, corpus: Corpus) -> dict[str, dict[str, Any]]:
    """The simple methods on the same test queries, by name."""
    train_split, queries, top = corpus.split("train"), corpus.split("test"), model.settings.search.top
    predictions = {
        "nearest neighbours by tf-idf": tfidf_neighbours(train_split, queries, top),
        "popularity": popularity(train_split, queries, top),
        "untrained encoder": zero_shot(model.settings, corpus.labels, queries),
    }
    return {name: score(ids, queries, train_split, model.settings.data) for name, ids in predictions.items()}


def sample_predictions(model: PrimeModel, queries: Split, num_samples: int, top: int = 5) -> list[Sample]:
    """Not picked by how well they went."""
    rows = sample_rows(queries, num_samples)
    texts = [queries.texts[row] for row in rows]
    filtered = None if queries.filtered is None else queries.filtered[rows]
    ids_QK, scores_QK = model.rank(texts, top, filtered)
    return [
        _sample(model, text, queries.positives[[row]].indices, ids, scores)
        for text, row, ids, scores in zip(texts, rows, ids_QK, scores_QK, strict=True)
    ]


def demo_report(
    model: PrimeModel,
    corpus: Corpus,
    results: Mapping[str, Mapping[str, Any]],
    samples: list[Sample],
    place: Path,
    train_s: float,
) -> Report:
    """What the page shows."""
    lines = (place / "model" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        "title": "PRIME on the embedded example",
        "facts": {
            "Training queries": f"{len(corpus.split('train')):,}",
            "Test queries": f"{len(corpus.split('test')):,}",
            "Labels": f"{len(corpus.labels):,}",
            "Preset": PRESET,
            "Trained in": f"{train_s:.0f} s on {model.device.type.upper()}",
        },
        "results": results,
        "log": [json.loads(line) for line in lines],
        "samples": samples,
    }


def _sample(model: PrimeModel, text: str, true_ids: Any, ids: Any, scores: Any) -> Sample:
    names, right = model.labels.names, set(true_ids.tolist())
    predictions = [(int(label), float(value)) for label, value in zip(ids, scores, strict=True) if label >= 0]
    found = {label for label, _ in predictions}
    return {
        "text": text,
        "predictions": [{"label": names[n], "score": value, "right": n in right} for n, value in predictions],
        "missed": [names[label] for label in sorted(right - found)],
    }


def _spoken(sample: Sample) -> str:
    lines = [f"  {'✓' if one['right'] else ' '} {one['score']:.2f}  {one['label']}" for one in sample["predictions"]]
    missed = [f"    not among these: {'; '.join(sample['missed'])}"] if sample["missed"] else []
    return "\n".join([sample["text"], *lines, *missed])
