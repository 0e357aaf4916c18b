from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "label_changes.py"


def test_a_tiny_run(tmp_path: Path) -> None:
    sizes = ["--queries", "60", "--labels", "40", "--change", "5"]
    command = [sys.executable, str(SCRIPT), *sizes, "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["change"].split()[0] for row in found["changes"]] == ["add", "remove", "add", "update", "rename", "add"]
    assert all(row["seconds"] > 0 for row in found["changes"]) and "add 5 with 4 examples each" in done.stdout
