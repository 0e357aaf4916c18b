"""The speed benchmarks at a tiny size, so that they never rot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments, "--device", "cpu", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["static", "tiny-minilm", "tiny-distilbert"])
def test_train_speed(encoder: str, tmp_path: Path) -> None:
    out = tmp_path / "train_speed.json"
    sizes = ["--queries", "300", "--labels", "150", "--batch", "50", "--epochs", "1"]
    shown = run("train_speed.py", "--encoder", encoder, *sizes, "--out", str(out))
    (row,) = json.loads(out.read_text())
    assert row["encoder"] == encoder and row["labels"] == 150 and row["batch"] == 50
    assert row["machine"] and row["torch"] and "commit" in row and row["mfu"] is None
    seconds = 300 / row["queries_per_s"]  # of the one epoch that counts: 6 steps
    assert row["step_ms"] == pytest.approx(1000 * seconds / 6, rel=0.01)
    assert row["sequences_per_s"] == pytest.approx((300 + 6 * row["labels_a_step"]) / seconds, rel=0.05)
    assert 0 < row["peak_gib"] < 4 and row["estimate_gib"] > 0
    assert "queries_per_s" in shown and encoder in shown


def test_cluster_speed(tmp_path: Path) -> None:
    out = tmp_path / "cluster_speed.json"
    for dtype in ("float32", "float16"):
        sizes = ["--points", "2000", "--dim", "16", "--sizes", "4", "64", "--dtype", dtype]
        assert "floor_s" in run("cluster_speed.py", *sizes, "--out", str(out))
    rows = json.loads(out.read_text())
    assert [(row["cluster_size"], row["dtype"]) for row in rows] == [
        (4, "float32"), (64, "float32"), (4, "float16"), (64, "float16"),
    ]  # fmt: skip
    assert all(row["seconds"] > 0 and row["machine"] for row in rows), "rows are added to those that are there"


def test_gpu_search_speed(tmp_path: Path) -> None:
    out = tmp_path / "gpu_search_speed.json"
    sizes = ["--labels", "3000", "--dim", "16", "--batches", "1", "7", "--repeats", "2"]
    assert "as_fp32" in run("gpu_search_speed.py", *sizes, "--out", str(out))
    rows = json.loads(out.read_text())
    assert [row["batch"] for row in rows] == [1, 7] and all(row["as_fp32"] == 1 and row["ms"] > 0 for row in rows)


def test_attention_speed() -> None:
    shown = run("attention_speed.py", "--texts", "200", "--heads", "2")
    assert "by length" in shown and "backward_ms" in shown


def test_the_made_up_data_is_of_the_shape_that_is_told() -> None:
    """6,400 draws of a batch hold at least 5,500 different labels; lengths around 12, at most 32."""
    program = """
import numpy as np
from made_up import training_data
from primexmc.sampling import PositiveSampler, batch_labels
data, rng = training_data(60_000, 131_073, 30_522), np.random.default_rng(0)
lengths = data.query_tokens.lengths
assert 11 < lengths.mean() < 13 and lengths.max() <= 32 and lengths.min() >= 3
counts = np.sort(np.bincount(data.positives.indices, minlength=131_073))[::-1]
assert counts[0] > 20 * counts[10_000] and len(data.label_tokens) == 131_073
drawn = PositiveSampler(data.positives, data.inverse_propensity_L, 2).draw(np.arange(3200), rng)
assert len(batch_labels(drawn)) >= 5500
"""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "benchmarks")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
