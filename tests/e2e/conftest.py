"""One shop, and one model that was trained on it without any settings."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from e2e.shop import write_shop

from primexmc.cli import main

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tokens go to a directory of the tests', and one thread is enough for data so small."""
    threads, before = torch.get_num_threads(), os.environ.get("PRIMEXMC_CACHE")
    torch.set_num_threads(1)
    os.environ["PRIMEXMC_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    torch.set_num_threads(threads)
    if before is None:
        del os.environ["PRIMEXMC_CACHE"]
    else:
        os.environ["PRIMEXMC_CACHE"] = before


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """train.csv of 500 products and held-out.csv of 200 others."""
    place = tmp_path_factory.mktemp("shop")
    write_shop(place / "train.csv", 500)
    write_shop(place / "held-out.csv", 200, seed=1)
    return place


@pytest.fixture(scope="session")
def model(shop):
    """`primexmc train train.csv --out model`, and nothing else."""
    assert main(["train", str(shop / "train.csv"), "--out", str(shop / "model"), "--quiet"]) == 0
    return shop / "model"


@pytest.fixture
def command():
    """Starts `python -m primexmc ...` in a process of its own."""
    started = []

    def start(*arguments, locale="C.UTF-8", **options):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "LC_ALL": locale, "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONIOENCODING", None)
        environment.pop("PYTHONUTF8", None)
        process = subprocess.Popen(
            [sys.executable, "-m", "primexmc", *map(str, arguments)],
            env=environment,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def stdin(monkeypatch):
    """Puts bytes on stdin."""

    def put(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put
