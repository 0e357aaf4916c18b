from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "read_speed.py"


def test_a_tiny_run(tmp_path: Path) -> None:
    sizes = ["--queries", "300", "--labels", "50", "--per-query", "3"]
    command = [sys.executable, str(SCRIPT), *sizes, "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["step"] for row in found["steps"]] == ["read", "tokenise", "tokenise again", "read + tokenise"]
    assert all(row["texts_per_s"] > 0 and row["peak_gb"] > 0 for row in found["steps"])
    assert "texts/s" in done.stdout
