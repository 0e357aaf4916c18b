"""What `primexmc serve` does when more is asked than it can answer; over loopback, with a made-up model.

    python benchmarks/serve_load.py --labels 524288 --seconds 60

First without and with batches as fast as it goes, then at 80 % of what it can do, then at twice that: how many were
answered, how many refused and how quickly, and whether anybody was lost. The server is a process of its own with one
thread for the model. Before that, /health on the idle server tells what the machine itself takes: its stalls are in all
other numbers, too. Prints one table and writes one JSON to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from primexmc.config import Settings
from primexmc.data.corpus import Labels
from primexmc.model.centroids import Centroids
from primexmc.model.model import PrimeModel
from primexmc.model.network import PrimeNetwork
from primexmc.model.static import StaticEncoder

RESULTS = Path(__file__).parent / "results"
CLIENTS = 48  # that ask without a pause: more than a batch, less than a batch at work and a full queue


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="serve-load-") as directory:
        print(f"making a model with {options.labels:,} labels ...", flush=True)
        texts = write_model(Path(directory) / "model", options.labels)
        rows = asyncio.run(measure(Path(directory) / "model", texts, options))
    report(options, rows)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=524_288)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="at twice the capacity; the other steps take a third"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "serve_load.json")
    return parser.parse_args(arguments)


def write_model(path: Path, num_labels: int) -> list[str]:
    """A static model whose labels are three words each, told apart by their text alone; gives texts to ask it."""
    encoder = StaticEncoder.from_directory(None)
    vocabulary = encoder.tokenizer.get_vocab()
    words = np.array(sorted(word for word in vocabulary if word.isalpha() and len(word) > 3))
    word_V = torch.tensor([vocabulary[word] for word in words])
    rng = np.random.default_rng(0)
    three_L3 = rng.integers(len(words), size=(num_labels, 3))
    names = [" ".join(three) for three in words[three_L3]]
    weighted_VD = (encoder.vectors_VD * encoder.weight_V[:, None]).detach()[word_V]
    settings = Settings().with_values({"prototypes.enabled": False}, "the benchmark")
    PrimeModel(
        settings=settings,
        labels=Labels([str(row) for row in range(num_labels)], names, names),
        label_counts_L=np.ones(num_labels, dtype=np.int64),
        num_train_queries=num_labels,
        network=PrimeNetwork(encoder, settings.prototypes, torch.zeros(num_labels, dtype=torch.int64)),
        prototypes_LD=functional.normalize(weighted_VD[torch.from_numpy(three_L3)].sum(dim=1), dim=1),
        centroids=Centroids.empty(num_labels, encoder.dim, torch.device("cpu")),
    ).save(path)
    return [" ".join(twelve) for twelve in words[rng.integers(len(words), size=(500, 12))]]


async def measure(path: Path, texts: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    short = max(1.0, options.seconds / 3)
    gc.collect()
    gc.freeze()  # else this client's own pauses would be measured, too
    with server(path, "--batch", "1", "--queue", str(CLIENTS)) as port:
        unbatched = await without_a_pause(port, texts, short)
    with server(path) as port:
        idle = await at_a_rate(port, None, 50, short)
        batched = await without_a_pause(port, texts, short)
        capacity = batched.accepted_per_s
        most = await at_a_rate(port, texts, 0.8 * capacity, short)
        twice = await at_a_rate(port, texts, 2 * capacity, options.seconds)
    steps = {"idle": idle, "unbatched": unbatched, "batched": batched, "80 %": most, "200 %": twice}
    return [{"step": name, **step.numbers()} for name, step in steps.items()]


@contextlib.contextmanager
def server(path: Path, *options: str) -> Iterator[int]:
    """A process that serves the model; gives its port."""
    command = [sys.executable, "-m", "primexmc", "serve", str(path), "--port", "0", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        try:
            yield int(line.rpartition(":")[2])
        finally:
            process.terminate()


@dataclass
class Step:
    """What came back, and when."""

    seconds: float = 0.0
    asked: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    accepted_ms: list[float] = field(default_factory=list)
    refused_ms: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)  # how far this client was behind its own timetable

    @property
    def accepted_per_s(self) -> float:
        return self.statuses[200] / self.seconds

    def came(self, status: int, ms: float) -> None:
        self.statuses[status] += 1
        (self.accepted_ms if status == 200 else self.refused_ms).append(ms)

    def numbers(self) -> dict[str, Any]:
        answered = sum(self.statuses.values())
        return {
            "asked": self.asked,
            "accepted": self.statuses[200],
            "refused": self.statuses[429],
            "lost": self.asked - answered + self.statuses[0],
            "5xx": sum(count for status, count in self.statuses.items() if status >= 500),
            "accepted_per_s": round(self.accepted_per_s, 1),
            **percentiles("accepted", self.accepted_ms),
            **percentiles("refused", self.refused_ms),
            "client_late_p99_ms": percentiles("", self.late_ms)["_p99_ms"],
        }


def percentiles(name: str, values: list[float]) -> dict[str, float | None]:
    if not values:
        return {f"{name}_p50_ms": None, f"{name}_p99_ms": None, f"{name}_max_ms": None}
    p50, p99 = np.percentile(values, [50, 99])
    return {
        f"{name}_p50_ms": round(float(p50), 1),
        f"{name}_p99_ms": round(float(p99), 1),
        f"{name}_max_ms": round(max(values), 1),
    }


async def without_a_pause(port: int, texts: list[str], seconds: float) -> Step:
    """So many clients, each asking again as soon as it has its answer."""
    step, started = Step(), time.perf_counter()

    async def client(number: int) -> None:
        connection, at = Connection(port), number
        while time.perf_counter() - started < seconds:
            step.asked += 1
            step.came(*await connection.ask(texts[at % len(texts)]))
            at += CLIENTS
        connection.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    step.seconds = time.perf_counter() - started
    return step


async def at_a_rate(port: int, texts: list[str] | None, rate: float, seconds: float) -> Step:
    """Questions at random moments, whether or not earlier ones have been answered: as strangers ask."""
    step, rng, idle, running = Step(), random.Random(0), list[Connection](), set[asyncio.Task[None]]()
    started = due = time.perf_counter()

    async def question(text: str | None) -> None:
        connection = idle.pop() if idle else Connection(port)
        step.came(*await connection.ask(text))
        idle.append(connection)

    while due - started < seconds:
        now = time.perf_counter()
        if now < due:
            await asyncio.sleep(due - now)
        step.late_ms.append(1e3 * max(0.0, time.perf_counter() - due))
        step.asked += 1
        task = asyncio.create_task(question(texts[step.asked % len(texts)] if texts else None))
        running.add(task)
        task.add_done_callback(running.discard)
        due += rng.expovariate(rate)
    await asyncio.gather(*running)
    step.seconds = time.perf_counter() - started
    for connection in idle:
        connection.close()
    return step


class Connection:
    """One kept connection; as little work as possible, because the server shares the machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.last = 0.0

    async def ask(self, text: str | None) -> tuple[int, float]:
        """(status, milliseconds) of a prediction, or of /health without a text; status 0 where no answer came."""
        started = time.perf_counter()
        if started - self.last > 3:  # the server closes what has been idle for 5 s
            self.close()
        try:
            async with asyncio.timeout(30):
                status = await self._exchange(b"" if text is None else json.dumps({"texts": [text]}).encode())
        except (OSError, EOFError, TimeoutError, ValueError):
            self.close()
            status = 0
        self.last = time.perf_counter()
        return status, 1e3 * (self.last - started)

    async def _exchange(self, body: bytes) -> int:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        asked = b"POST /predict" if body else b"GET /health"
        writer.write(asked + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        return int(head[9:12])

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


def report(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    columns = ("step", "asked", "accepted", "refused", "lost", "5xx", "accepted_per_s", "accepted_p50_ms")
    columns += ("accepted_p99_ms", "refused_p99_ms", "refused_max_ms", "client_late_p99_ms")
    widths = [max(len(name), 9) for name in columns]
    print("  ".join(name.rjust(width) for name, width in zip(columns, widths, strict=True)))
    for row in rows:
        cells = ("-" if row[name] is None else str(row[name]) for name in columns)
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
    idle, unbatched, batched, most, twice = rows
    found = {
        "batched over unbatched": over(batched["accepted_per_s"], unbatched["accepted_per_s"]),
        "refused p99 at 200 % over /health p99 idle": over(twice["refused_p99_ms"], idle["accepted_p99_ms"]),
        "p99 at 200 % over p99 at 80 %": over(twice["accepted_p99_ms"], most["accepted_p99_ms"]),
    }
    print("\n".join(f"{name}: {value}" for name, value in found.items()))
    about = {"machine": platform.processor() or platform.machine(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    made = {**about, **versions, "commit": commit.stdout.strip(), "labels": options.labels, "seconds": options.seconds}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**made, **found, "steps": rows}, indent=2) + "\n", encoding="utf-8")
    print(f"written to {options.out}")


def over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else round(one / other, 2)


if __name__ == "__main__":
    main()
