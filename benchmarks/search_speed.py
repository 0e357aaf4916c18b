"""How fast labels are searched: one query and a batch, our exact search beside faiss' in the same run.

    python benchmarks/search_speed.py --labels 131072 --dim 384
    python benchmarks/search_speed.py --model my-model        # trained prototypes, and indexes of them, too

Prints one table and writes one JSON to benchmarks/results/. All take turns, so that what else the machine does hits
them alike; `ms` is the best of the rounds, `cpu_ms` the same in seconds of the processor, which others cannot lengthen.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from primexmc.config import SearchSettings
from primexmc.model.index import typical_queries
from primexmc.model.model import PrimeModel
from primexmc.retrieval.exact import ExactIndex
from primexmc.retrieval.kept import build_index, load_index

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]
Search = Callable[[NDArray[np.float32], int], NDArray[np.int64]]


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    rows: list[Row] = []
    for threads in options.threads:
        set_threads(threads)
        z_LD, h_QD = made_up(options.labels, options.dim, options.batch)
        rows += race("made up", exact_ways(z_LD), z_LD, h_QD, options, threads)
        if options.model is not None:
            model = PrimeModel.load(options.model, "cpu")
            h_ND = typical_queries(model)[0].numpy()
            contenders = {**exact_ways(model.prototypes_LD), **indexes(model, options.kinds)}
            rows += race("trained", contenders, model.prototypes_LD, h_ND, options, threads)
    report(rows, options)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=131_072)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--top", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--model", type=Path, help="a trained model: random vectors defeat every index but the exact")
    parser.add_argument("--kinds", nargs="*", default=["hnsw", "hnsw-8bit", "ivf", "ivf-8bit"], help="of search.faiss")
    parser.add_argument("--out", type=Path, default=RESULTS / "search_speed.json")
    return parser.parse_args(arguments)


def made_up(labels: int, dim: int, batch: int) -> tuple[torch.Tensor, NDArray[np.float32]]:
    """Random directions: the hardest there is for selecting by short codes, as so many labels are nearly as good."""
    generator = torch.Generator().manual_seed(0)
    z_LD = torch.nn.functional.normalize(torch.randn(labels, dim, generator=generator), dim=1)
    return z_LD, torch.nn.functional.normalize(torch.randn(batch, dim, generator=generator), dim=1).numpy()


def exact_ways(z_LD: torch.Tensor) -> dict[str, Search]:
    """Ours in each precision, faiss' where it is installed, and the GPU's where there is one."""
    ways: dict[str, Search] = {}
    if importlib.util.find_spec("faiss") is not None:
        ways["faiss FlatIP"] = faiss_flat(z_LD)
    for precision in ("fp32", "bf16", "int8", "auto"):
        ways[f"exact {precision}"] = searching(ExactIndex(z_LD, precision=precision))  # type: ignore[arg-type]
    if torch.cuda.is_available():
        ways["exact cuda"] = searching(ExactIndex(z_LD.cuda()))
    return ways


def indexes(model: PrimeModel, kinds: list[str]) -> dict[str, Search]:
    """faiss' indexes of a model's prototypes, as `primexmc index` builds them."""
    ways: dict[str, Search] = {}
    for kind in kinds if importlib.util.find_spec("faiss") is not None else ():
        settings = SearchSettings(backend="faiss", faiss=kind, recall=0.975, min_recall=0.0)  # type: ignore[arg-type]
        with tempfile.TemporaryDirectory() as place:
            started = time.process_time()
            build_index(model.prototypes_LD, typical_queries(model)[0], settings, Path(place) / "index")
            print(f"built faiss {kind} in {time.process_time() - started:.0f} CPU seconds", flush=True)
            ways[f"faiss {kind}"] = searching(load_index(Path(place) / "index", model.prototypes_LD))
    return ways


def searching(index: Any) -> Search:
    return lambda h_QD, top: index.search(h_QD, top)[0]


def faiss_flat(z_LD: torch.Tensor) -> Search:
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20  # or batches are 7 times too slow
    index = faiss.IndexFlatIP(z_LD.shape[1])
    index.add(z_LD.numpy())
    return lambda h_QD, top: index.search(h_QD, top)[1]


def race(
    data: str, ways: dict[str, Search], z_LD: torch.Tensor, h_ND: NDArray[np.float32], options: Any, threads: int
) -> list[Row]:
    """One query at a time, then a batch; a row for each way."""
    truth_NK = ExactIndex(z_LD, precision="fp32").search(h_ND[: options.batch], options.top)[0]
    rows = []
    for batch in (1, min(options.batch, len(h_ND))):
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        calls = 20 if batch == 1 else 1
        for turn in range(options.rounds + 1):
            for name, way in ways.items():
                spent = timed(way, h_ND, batch, options.top, calls)
                if turn:  # the first warms up
                    times[name].append(spent)
        for name, way in ways.items():
            ms, cpu_ms = (1000 * min(column) for column in zip(*times[name], strict=True))
            found_NK = way(h_ND[: options.batch], options.top)
            shared = [len(np.intersect1d(a, b)) for a, b in zip(found_NK, truth_NK, strict=True)]
            sizes = {"labels": len(z_LD), "dim": z_LD.shape[1], "batch": batch, "top": options.top, "threads": threads}
            recall = round(float(np.mean(shared)) / truth_NK.shape[1], 4)
            speeds = {"ms": round(ms, 3), "cpu_ms": round(cpu_ms, 3), "queries_per_s": round(1000 * batch / ms)}
            rows.append({"data": data, "way": name, **sizes, **speeds, "recall": recall})
    return rows


def timed(way: Search, h_ND: NDArray[np.float32], batch: int, top: int, calls: int) -> tuple[float, float]:
    """Seconds of a call, and of the processor."""
    started, cpu_started = time.perf_counter(), time.process_time()
    for call in range(calls):
        way(h_ND[call % (len(h_ND) - batch + 1) :][:batch], top)
    return (time.perf_counter() - started) / calls, (time.process_time() - cpu_started) / calls


def set_threads(threads: int) -> None:
    torch.set_num_threads(threads)
    if importlib.util.find_spec("faiss") is not None:
        import faiss

        faiss.omp_set_num_threads(threads)


def report(rows: list[Row], options: argparse.Namespace) -> None:
    titles = f"{'data':8} {'way':15} {'labels':>8} {'dim':>4} {'batch':>5} {'threads':>7}"
    print(f"{titles} {'ms':>9} {'cpu ms':>9} {'queries/s':>9} {'recall':>7}")
    for row in rows:
        sizes = f"{row['data']:8} {row['way']:15} {row['labels']:8,} {row['dim']:4} {row['batch']:5} {row['threads']:7}"
        print(f"{sizes} {row['ms']:9.2f} {row['cpu_ms']:9.2f} {row['queries_per_s']:9,} {row['recall']:7.4f}")
    about = {"machine": machine(), "cpu_cores": os.cpu_count(), "python": platform.python_version()}
    about |= {"torch": torch.__version__, "commit": commit()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print(f"-> {options.out}")


def machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    names = [line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cpuinfo() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text().splitlines() if file.exists() else []


def commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=RESULTS.parent).stdout.strip()


if __name__ == "__main__":
    main()
