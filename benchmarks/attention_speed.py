"""The ways of attention within packed texts beside each other: a batch of 9,600 texts around 12 tokens.

python benchmarks/attention_speed.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from made_up import training_data
from record import machine, show

from primexmc.model import packed_attention
from primexmc.model.encode import pick_device
from primexmc.model.packed_attention import Attention, by_length

REPEATS = 10


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=9600)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    device = pick_device(options.device)
    print(machine(device))
    show(list(rows(options, device)), ["kernel", "head_dim", "dropout", "forward_ms", "backward_ms", "note"])


def rows(options: argparse.Namespace, device: torch.device) -> Iterator[dict[str, Any]]:
    lengths = training_data(options.texts, 100, 1000).query_tokens.lengths
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for head_dim in (64, 32):
        shape = (int(lengths.sum()), options.heads, head_dim)
        inputs = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
        for name, make in kernels(lengths, device).items():
            for dropout in (0.0, 0.1):
                row = {"kernel": name, "head_dim": head_dim, "dropout": dropout}
                try:
                    forward_ms, backward_ms = timed(make(), inputs, dropout)
                    yield row | {"forward_ms": forward_ms, "backward_ms": backward_ms, "note": ""}
                except Exception as error:  # the others are still worth knowing
                    yield row | {"note": f"{error!r:.60}"}


def kernels(lengths: np.ndarray[Any, Any], device: torch.device) -> dict[str, Callable[[], Attention]]:
    found: dict[str, Callable[[], Attention]] = {"by length": lambda: by_length(np.sort(lengths))}
    if device.type == "cuda":
        for name, make in packed_attention.KERNELS.items():
            found[name] = lambda make=make: make(lengths, device)
    return found


def timed(attention: Attention, inputs: list[torch.Tensor], dropout: float) -> tuple[float, float]:
    """Medians in milliseconds."""
    forward, backward = [], []
    for _ in range(REPEATS + 2):
        start = now(inputs[0].device)
        attended = attention(inputs[0], inputs[1], inputs[2], dropout)
        middle = now(inputs[0].device)
        torch.autograd.grad(attended, inputs, attended.detach())
        forward.append(middle - start)
        backward.append(now(inputs[0].device) - middle)
    return 1000 * float(np.median(forward[2:])), 1000 * float(np.median(backward[2:]))


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


if __name__ == "__main__":
    main()
