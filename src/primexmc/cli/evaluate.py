"""`primexmc evaluate`: how good a model is on data."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .options import add_device_option, add_mode_option, add_set_option

SENTENCE = "measure a model on data: a table on the screen, and JSON where wanted"
EPILOG = """A single file is read as test data. All numbers are in percent; head, torso and tail are the labels by how
often they were trained, a third of the training pairs each.

examples:
  primexmc evaluate my-model test.csv
  primexmc evaluate my-model my-data/ --split val --json scores.json
  primexmc evaluate my-model my-data/ --json - | jq '."P@1"'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("data", metavar="DATA", help="a file or a directory to measure it on")
    parser.add_argument("--split", default="tst", help="train, val or test (default)")
    parser.add_argument("--json", metavar="FILE", help='write the numbers as JSON, too; "-" prints them instead')
    add_mode_option(parser)
    add_set_option(parser)
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..atomic import replace_file
    from ..config import parse_overrides
    from ..data.corpus import Corpus
    from ..evaluation.evaluate import evaluate
    from ..evaluation.table import format_result
    from ..model.model import PrimeModel

    values = parse_overrides(arguments.set)
    model = PrimeModel.load(arguments.model, arguments.device)
    settings = model.settings.with_values(values, "--set")
    model.mode = settings.search.mode if arguments.mode is None else arguments.mode
    corpus = Corpus.load(arguments.data, settings=settings.data, single_file_as="test")
    result = evaluate(model, corpus, arguments.split, progress=_progress if sys.stderr.isatty() else None)
    text = json.dumps(result, indent=2) + "\n"
    if arguments.json == "-":
        print(text, end="")
        return 0
    print(format_result(result))
    if arguments.json is not None:
        with replace_file(Path(arguments.json)) as file:
            file.write_text(text, encoding="utf-8")
    return 0


def _progress(done: int, total: int) -> None:
    print(f"\r{done:,} of {total:,} queries", end="\r\033[K" if done >= total else "", file=sys.stderr, flush=True)
