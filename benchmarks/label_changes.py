"""How long it takes to add, update, rename and remove labels, in a model of made-up labels with the embedded encoder.

    python benchmarks/label_changes.py --labels 100000 --change 10000

Prints one table and writes one JSON to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from primexmc.compare.provenance import commit
from primexmc.config import Settings
from primexmc.data.corpus import Labels
from primexmc.data.texts import Texts
from primexmc.model.centroids import Centroids
from primexmc.model.encoder import load_encoder
from primexmc.model.memory import Memory
from primexmc.model.model import PrimeModel
from primexmc.model.network import PrimeNetwork
from primexmc.model.new_prototypes import label_vectors, trained_prototypes

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    model = made_up_model(options.labels, options.queries)
    rows = measure(model, options.change)
    print(f"{options.labels:,} labels, {options.queries:,} remembered queries, {torch.get_num_threads()} threads:")
    for row in rows:
        print(f"  {row['change']:<36}{row['seconds']:>8.2f} s {row['cpu_s']:>8.2f} s of all cores")
    machine = {"cpu_cores": os.cpu_count(), "threads": torch.get_num_threads(), "python": platform.python_version()}
    versions = {"torch": torch.__version__, "commit": commit()}
    sizes = {"labels": options.labels, "queries": options.queries, "change": options.change}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**sizes, **machine, **versions, "changes": rows}, indent=1) + "\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100_000, help="that the model remembers")
    parser.add_argument("--change", type=int, default=10_000, help="labels that are added, updated, renamed, removed")
    parser.add_argument("--out", type=Path, default=RESULTS / "label_changes.json")
    return parser.parse_args(arguments)


def measure(model: PrimeModel, number: int) -> list[dict[str, Any]]:
    new, again = made_up_texts(number, seed=2), made_up_texts(number, seed=3)
    uids = [f"new {row}" for row in range(number)]
    examples = [[f"{text} one", f"{text} two", f"{text} three", f"{text} four"] for text in new]
    steps: list[tuple[str, Callable[[], object]]] = [
        (f"add {number:,}", lambda: model.add_labels(new, uids)),
        (f"remove {number:,}", lambda: model.remove_labels(uids)),
        (f"add {number:,} with 4 examples each", lambda: model.add_labels(new, uids, queries=examples)),
        (f"update {number:,} with 4 more", lambda: model.update_labels(dict(zip(uids, examples[::-1], strict=True)))),
        (f"rename {number:,}", lambda: model.rename_labels(dict(zip(uids, again, strict=True)))),
        ("add 1", lambda: model.add_labels(["one more label"])),
    ]
    rows = []
    for change, action in steps:
        started, cpu_started = time.perf_counter(), time.process_time()
        action()
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
        rows.append({"change": change, "seconds": round(seconds, 3), "cpu_s": round(cpu_s, 3)})
    return rows


def made_up_model(num_labels: int, num_queries: int) -> PrimeModel:
    """Untrained, but whole: two labels a query, and centroids and prototypes as training would leave them."""
    rng = np.random.default_rng(0)
    settings = Settings().with_values({"prototypes.width": 256}, "benchmark")
    texts, queries = made_up_texts(num_labels, seed=0), made_up_texts(num_queries, seed=1)
    free_vector_of_L = torch.arange(num_labels) % max(1, num_labels // 3)
    network = PrimeNetwork(load_encoder(settings.encoder), settings.prototypes, free_vector_of_L, num_labels)
    labels = rng.integers(num_labels, size=2 * num_queries)
    rows = np.repeat(np.arange(num_queries), 2)
    positives = csr_matrix((np.ones(len(rows), np.float32), (rows, labels)), shape=(num_queries, num_labels))
    positives.data[:] = 1
    dim = network.encoder.dim
    model = PrimeModel(
        settings=settings,
        labels=Labels(Texts.of(f"old {row}" for row in range(num_labels)), Texts.of(texts), Texts.of(texts)),
        label_counts_L=np.bincount(labels, minlength=num_labels).astype(np.int64),
        num_train_queries=num_queries,
        network=network,
        prototypes_LD=torch.zeros(num_labels, dim),
        centroids=Centroids.empty(num_labels, dim, torch.device("cpu")),
    )
    h_ND = torch.from_numpy(model.encode(queries))
    model.centroids.set_to_mean([h_ND], positives)
    h_LD = label_vectors(model, texts)
    model.prototypes_LD = trained_prototypes(model, h_LD, model.centroids, free_vector_of_L)
    model.memory = Memory(h_ND.half(), positives, Texts.of(queries))
    model.labels_changed()
    return model


def made_up_texts(number: int, seed: int) -> list[str]:
    """Five of 5,000 words each."""
    rng = np.random.default_rng(seed)
    words = [f"{first}{second}{third}" for first in "bdfglmnprstvz" for second in "aeiouy" for third in WORD_ENDS]
    return [" ".join(words[word] for word in row) for row in rng.integers(len(words), size=(number, 5)).tolist()]


WORD_ENDS = [a + b + c for a in "lmnrst" for b in "aeo" for c in ("", "n", "ck", "st")]

if __name__ == "__main__":
    main()
