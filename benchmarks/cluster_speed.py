"""How long it takes to cluster the training queries anew: made-up unit vectors, 2.2M x 768 into clusters of 4 and 1024.

    python benchmarks/cluster_speed.py                                           # on a GPU
    python benchmarks/cluster_speed.py --points 35000 --dim 256 --device cpu     # tate's size

Prints one table and adds rows to benchmarks/results/cluster_speed.json. `floor_s` is what reading the points twice an
iteration (scores and means) would take at --bandwidth, the least that this algorithm can do.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, add_rows, facts, show

from primexmc.model.encode import pick_device
from primexmc.sampling import balanced_clusters
from primexmc.training.log import peak_memory_gib

ITERATIONS = 8  # balanced_clusters' own
COLUMNS = ["points", "dim", "cluster_size", "dtype", "seconds", "floor_s", "peak_gib", "machine"]


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    device = pick_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    x_ND = points(options, device)
    rows = [measure(x_ND, size, options, device) for size in options.sizes]
    show(rows, COLUMNS)
    add_rows(options.out, rows)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2_200_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 1024], help="points in a cluster")
    parser.add_argument("--dtype", choices=["float32", "float16"], default="float32", help="of the query bank")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 takes all cores")
    parser.add_argument("--bandwidth", type=float, help="TB/s; without it 4.3 (measured on an H200), on a CPU 0.02")
    parser.add_argument("--out", type=Path, default=RESULTS / "cluster_speed.json")
    return parser.parse_args(arguments)


def points(options: argparse.Namespace, device: torch.device) -> torch.Tensor:
    """A thousand directions with noise, so that there is something to find."""
    generator = torch.Generator(device).manual_seed(0)
    centre_CD = torch.randn(1000, options.dim, device=device, generator=generator)
    which_N = torch.randint(1000, (options.points,), device=device, generator=generator)
    x_ND = torch.empty(options.points, options.dim, device=device, dtype=getattr(torch, options.dtype))
    for start in range(0, options.points, 1 << 17):
        part = slice(start, start + (1 << 17))
        near_BD = centre_CD[which_N[part]]
        near_BD += torch.randn(near_BD.shape, device=device, generator=generator)
        x_ND[part] = torch.nn.functional.normalize(near_BD, dim=1)
    return x_ND


def measure(x_ND: torch.Tensor, size: int, options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    num_clusters = -(-len(x_ND) // size)
    balanced_clusters(x_ND[: 10 * size], 10, seed=0)  # warms up
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    balanced_clusters(x_ND, num_clusters, seed=0).cpu()
    seconds = time.perf_counter() - started
    passes = 2 * ITERATIONS * math.ceil(math.log2(num_clusters))
    bandwidth = options.bandwidth or (4.3 if device.type == "cuda" else 0.02)
    return {
        "points": len(x_ND),
        "dim": x_ND.shape[1],
        "cluster_size": size,
        "dtype": options.dtype,
        "seconds": round(seconds, 3),
        "floor_s": round(passes * x_ND.nbytes / bandwidth / 1e12, 3),
        "peak_gib": round(peak_memory_gib(device), 2),
        **facts(device),
    }


if __name__ == "__main__":
    main()
