"""How quickly a model answers on this machine: one text at a time, and many together; made-up labels and texts.

    python benchmarks/predict_speed.py --encoders static,/path/to/all-MiniLM-L6-v2 --labels 131072
    python benchmarks/predict_speed.py --model my-model --data my-data        # trained: every mode, and all parts

Prints one table and writes one JSON to benchmarks/results/. Without a model the labels' vectors are random. For each
encoder, and for a transformer in fp32 and in int8: reading and encoding, the search, and `PrimeModel.predict` as a
whole. With a trained model: `predict` in each mode, and the parts of a batch (predict_parts.py). "cpu ms" is the
processor's time of all cores, which other programs lengthen less; "load" says how busy they kept it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from predict_parts import parts

from primexmc.config import EncoderSettings, Settings
from primexmc.data import example_path
from primexmc.data.corpus import Corpus, Labels
from primexmc.fusion.blend import OF_CLASSIFIER
from primexmc.model.centroids import Centroids
from primexmc.model.encoder import load_encoder
from primexmc.model.model import PrimeModel
from primexmc.model.network import PrimeNetwork

RESULTS = Path(__file__).parent / "results"
TOP = 5


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    print(f"{'encoder':26} {'what':22} {'p50 ms':>9} {'p95 ms':>9} {'cpu ms':>9} {'texts/s':>9}")
    for name, precision, found in of_trained(options) if options.model else of_made_up(options):
        for row in found:
            rows.append({"encoder": name, "precision": precision, **row})
            numbers = " ".join(f"{row[key]:9.2f}" for key in ("p50_ms", "p95_ms", "cpu_ms"))
            print(f"{name + ' ' + precision:26} {row['what']:22} {numbers} {row['texts_per_s']:9,.0f}", flush=True)
    sizes = {name: getattr(options, name) for name in ("labels", "texts", "batch_size", "threads")}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**sizes, **machine(), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"-> {options.out}")


def of_made_up(options: argparse.Namespace) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    for name in options.encoders.split(","):
        for precision in ("fp32",) if name == "static" else ("fp32", "int8"):
            yield Path(name).name, precision, measure(model_with(name, options.labels, precision), options)


def of_trained(options: argparse.Namespace) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Each mode that the model has, then the parts of a batch."""
    model = PrimeModel.load(options.model, "cpu")
    name, precision = Path(model.settings.encoder.name).name, model.settings.search.encoder
    texts = list(Corpus.load(options.data or example_path()).split("test").texts)
    batch, single = texts[: options.batch_size], [[text] for text in texts[: options.texts]]
    for mode in model.blend.weights if model.blend else ("theta",):
        if mode in OF_CLASSIFIER and model.classifier_LD is None:
            continue
        model.mode = mode
        found = [
            timed(f"{mode}, one text", lambda one: model.rank(one, TOP), single),
            timed(f"{mode}, {len(batch)} together", lambda many: model.rank(many, TOP), [batch] * 5),
        ]
        yield name, precision, found
    actions = parts(model, batch, TOP)
    yield name, precision, [timed(what, lambda do: do(), [do] * 5, len(batch)) for what, do in actions.items()]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", default="static", help="names or directories with commas between them (static)")
    parser.add_argument("--model", type=Path, help="a trained model in place of made-up ones")
    parser.add_argument("--data", type=Path, help="whose test texts are asked (the embedded example)")
    parser.add_argument("--labels", type=int, default=131_072)
    parser.add_argument("--texts", type=int, default=200, help="single texts that are timed")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS / "predict_speed.json")
    return parser.parse_args(arguments)


def model_with(name: str, num_labels: int, precision: str) -> PrimeModel:
    """Untrained, with random prototypes of length 1."""
    encoder = load_encoder(EncoderSettings(name=name))
    values = {"encoder.name": name, "prototypes.num_free_vectors": 1, "search.encoder": precision}
    settings = Settings().with_values(values, "the benchmark")
    z_LD = torch.nn.functional.normalize(torch.randn(num_labels, encoder.dim), dim=1)
    numbers = [f"label {number}" for number in range(num_labels)]
    return PrimeModel(
        settings=settings,
        labels=Labels(numbers, numbers, numbers),
        label_counts_L=np.ones(num_labels, dtype=np.int64),
        num_train_queries=num_labels,
        network=PrimeNetwork(encoder, settings.prototypes, torch.zeros(num_labels, dtype=torch.int64)),
        prototypes_LD=z_LD,
        centroids=Centroids.empty(num_labels, encoder.dim, torch.device("cpu")),
    )


def measure(model: PrimeModel, options: argparse.Namespace) -> list[dict[str, Any]]:
    texts = example_texts(options.texts + options.batch_size)[: options.texts + options.batch_size]
    h_QD = model.encode(texts)
    single, batch = [[text] for text in texts[: options.texts]], [texts[options.texts :]]
    rows = [h_QD[number : number + 1] for number in range(options.texts)]
    return [
        timed("encode, one text", model.encode, single),
        timed("search, one text", lambda h_1D: model.search(h_1D, TOP), rows),
        timed("predict, one text", lambda one: model.predict(one, TOP), single),
        timed(f"predict, {options.batch_size} together", lambda many: model.predict(many, TOP), batch * 5),
    ]


def timed(
    what: str, action: Callable[[Any], object], questions: Sequence[Any], num_texts: int | None = None
) -> dict[str, Any]:
    for question in questions[:5]:
        action(question)
    seconds, cpu_s = [], []
    for question in questions:
        started, cpu_started = time.perf_counter(), time.process_time()
        action(question)
        seconds.append(time.perf_counter() - started)
        cpu_s.append(time.process_time() - cpu_started)
    p50, p95 = (float(np.percentile(seconds, p)) for p in (50, 95))
    milliseconds = {"p50_ms": 1000 * p50, "p95_ms": 1000 * p95, "cpu_ms": 1000 * float(np.median(cpu_s))}
    return {"what": what, **milliseconds, "texts_per_s": (num_texts or len(questions[0])) / p50}


def example_texts(count: int) -> list[str]:
    """Descriptions of works of art: 14 words on average."""
    texts = Corpus.load(example_path()).split("test").texts[:count]
    return [*texts] * (1 + count // len(texts))


def machine() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    cpu = next((line.partition(":")[2].strip() for line in cpu_lines() if line.startswith("model name")), "unknown")
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {
        "cpu": cpu,
        "cpu_cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        **versions,
        "commit": commit.stdout.strip() or "unknown",
    }


def cpu_lines() -> list[str]:
    info = Path("/proc/cpuinfo")
    return info.read_text(encoding="utf-8").splitlines() if info.exists() else []


if __name__ == "__main__":
    main()
