from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search_speed.py"


def test_a_tiny_run(tmp_path: Path) -> None:
    sizes = ["--labels", "3000", "--dim", "16", "--batch", "4", "--top", "10", "--rounds", "1"]
    command = [sys.executable, str(SCRIPT), *sizes, "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    ours = [row for row in found["rows"] if row["way"].startswith("exact")]
    assert {(row["way"], row["batch"]) for row in ours} >= {("exact int8", 1), ("exact int8", 4), ("exact fp32", 1)}
    assert all(row["recall"] == 1 and row["ms"] > 0 and row["labels"] == 3000 for row in ours)
    assert found["commit"] and found["machine"] and "queries/s" in done.stdout
