from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve_load.py"


@pytest.mark.slow
def test_a_tiny_run(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--labels", "300", "--seconds", "1", "--out", str(tmp_path / "out.json")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["step"] for row in found["steps"]] == ["idle", "unbatched", "batched", "80 %", "200 %"]
    for row in found["steps"]:
        assert row["asked"] == row["accepted"] + row["refused"] > 0
        assert row["lost"] == row["5xx"] == 0
    assert "accepted_per_s" in done.stdout
