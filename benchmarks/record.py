"""What every speed benchmark writes down beside its numbers: the machine, the versions, the commit; and the table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def machine(device: torch.device) -> str:
    """The GPU by its name, or the processor and the threads that are used."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_processor()}, {torch.get_num_threads()} of {os.cpu_count()} cores"


def facts(device: torch.device) -> dict[str, str]:
    """Versions and place."""
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    return {"machine": machine(device), "commit": commit(), **versions}


def commit() -> str:
    """Of this file's checkout, with a mark where it has been changed since; or what COMMIT says, for copies of one."""
    here = Path(__file__).parent
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    try:
        name = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=here, capture_output=True, text=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "src"], cwd=here.parent, capture_output=True, text=True
        )
    except OSError:
        return ""
    if name.returncode:
        return ""
    return name.stdout.strip() + ("+" if changed.stdout.strip() else "")


def add_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Appends: the last row of a kind counts."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in [*before, *rows])
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"-> {file}")


def show(rows: list[dict[str, Any]], columns: list[str]) -> None:
    """One table."""
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [columns, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
