from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from model.cases_of_labels import made_model

from primexmc.fusion.blend import Blend

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "predict_speed.py"


def test_a_tiny_run(tmp_path: Path) -> None:
    sizes = ["--labels", "100", "--texts", "5", "--batch-size", "4", "--threads", "1"]
    command = [sys.executable, str(SCRIPT), *sizes, "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["what"] for row in found["rows"]] == [
        "encode, one text",
        "search, one text",
        "predict, one text",
        "predict, 4 together",
    ]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] and row["cpu_ms"] > 0 for row in found["rows"])
    assert found["commit"] and "p50 ms" in done.stdout


def test_a_trained_model_in_all_modes_and_its_parts(tmp_path: Path) -> None:
    model = made_model()
    model.blend = Blend()
    model.save(tmp_path / "model")
    sizes = ["--model", str(tmp_path / "model"), "--texts", "3", "--batch-size", "4", "--threads", "1"]
    command = [sys.executable, str(SCRIPT), *sizes, "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    names = [row["what"] for row in found["rows"]]
    assert {"memory, one text", "all, 4 together", "search prototypes", "search memory", "add up and sort"} <= {*names}
    assert found["load"] >= 0 and all(row["p50_ms"] > 0 for row in found["rows"])
