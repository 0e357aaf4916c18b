"""`primexmc demo`: everything once, on the embedded example."""

from __future__ import annotations

import argparse
from pathlib import Path

SENTENCE = "train, compare and predict on the embedded example, in about two minutes"
EPILOG = """example:
  primexmc demo
writes primexmc-demo/ with the model, evaluation.json and report.html."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("primexmc-demo"), help="where to write (primexmc-demo)"
    )


def run(arguments: argparse.Namespace) -> int:
    from ..demo import run_demo

    run_demo(arguments.out)
    return 0
