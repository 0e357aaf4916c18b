"""Exact search on a GPU: one query, a batch, and many batches in a row, against what memory and products allow.

    python benchmarks/gpu_search_speed.py --labels 1300000 --dim 768

Random vectors, which are the hardest: neighbours lie close together. `limit_ms`: the half-precision vectors read once,
or the batch's products at the chip's dense rate, whichever takes longer. `as_fp32`: the share of the best 100 that a
plain fp32 scan on the same GPU finds as well. One table, and rows in benchmarks/results/gpu_search_speed.json.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import RESULTS, add_rows, facts, show
from torch.nn import functional

from primexmc.model.encode import pick_device
from primexmc.retrieval.exact import ExactIndex

TOP = 100
BYTES_PER_S, FLOPS = 4.3e12, 790e12  # measured on an H200
COLUMNS = ["labels", "dim", "batch", "ms", "limit_ms", "queries_per_s", "as_fp32"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=1_300_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 256, 1024])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 takes all cores")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_search_speed.json")
    options = parser.parse_args(arguments)
    device = pick_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    generator = torch.Generator(device).manual_seed(0)
    z_LD = functional.normalize(torch.randn(options.labels, options.dim, generator=generator, device=device), dim=1)
    index, slow = ExactIndex(z_LD), ExactIndex(z_LD, precision="fp32")
    rows = []
    for batch in options.batches:
        h_QD = functional.normalize(torch.randn(batch, options.dim, generator=generator, device=device), dim=1)
        ms = 1e3 * _best_time(index, h_QD, options.repeats)
        rows.append(_row(index, slow, h_QD, ms) | facts(device))
    show(rows, COLUMNS)
    add_rows(options.out, rows)


def _best_time(index: ExactIndex, h_QD: torch.Tensor, repeats: int) -> float:
    """Seconds of one search, ids and scores on the host at its end: the median, after one that warms up."""
    index.search(h_QD, TOP)
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        index.search(h_QD, TOP)  # what it returns lies on the host, so it has waited for the GPU
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def _row(index: ExactIndex, slow: ExactIndex, h_QD: torch.Tensor, ms: float) -> dict[str, Any]:
    (L, D), Q = index.z_LD.shape, len(h_QD)
    found, expected = index.search(h_QD, TOP)[0], slow.search(h_QD, TOP)[0]
    same = np.mean([len(set(one) & set(other)) / min(TOP, L) for one, other in zip(found, expected, strict=True)])
    limit_ms = 1e3 * max(2 * L * D / BYTES_PER_S, 2 * L * D * Q / FLOPS)
    row = {"labels": L, "dim": D, "batch": Q, "ms": round(ms, 3), "limit_ms": round(limit_ms, 3)}
    return row | {"queries_per_s": round(1e3 * Q / ms), "as_fp32": round(float(same), 6)}


if __name__ == "__main__":
    main()
