"""`primexmc train`: data in, a model directory out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Settings
from .options import add_settings_options, chosen_settings

if TYPE_CHECKING:
    from ..model.model import PrimeModel

SHOWN = ("P@1", "P@5", "nDCG@5", "PSP@5", "R@100")
SENTENCE = "train a model on data and write it to a directory"
EPILOG = """DATA is a CSV, TSV, JSONL or Parquet file with the columns text and labels, a directory of such files
(train, val, test, labels), or one in a layout of the Extreme Classification Repository; docs/data.md tells more.
Settings that nobody names follow from the data and the machine, and are printed.

examples:
  primexmc train products.csv --out my-model
  primexmc train products.csv --out my-model --set data.text_column=title --set training.epochs=30
  primexmc train LF-AmazonTitles-131K --out my-model --preset lf-amazontitles-131k
  primexmc train all-of-today.csv --from my-model --out new-model
  primexmc train new-ones.csv --from my-model --out new-model --set training.replay=true

Ctrl-C stops and saves; the same command with --resume continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a file or a directory to train on")
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="directory to write the model to")
    add_settings_options(parser)
    parser.add_argument(
        "--from",
        dest="from_model",
        metavar="MODEL",
        type=Path,
        help="go on with what this model has learned, in a quarter of its epochs; its settings stand unless named",
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--resume", action="store_true", help="continue a training that was stopped")
    existing.add_argument("--overwrite", action="store_true", help="start afresh where an unfinished training lies")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and notes")


def run(arguments: argparse.Namespace) -> int:
    settings, values = _settings(arguments)
    from ..data.corpus import Corpus
    from ..training.place import check_place
    from ..training.train import train

    check_place(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite)
    corpus = Corpus.load(arguments.data, settings=settings.data)
    model = train(
        corpus,
        arguments.preset,
        values,
        config=arguments.config,
        from_model=arguments.from_model,
        out=arguments.out,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        quiet=arguments.quiet,
    )
    if not arguments.quiet:
        print(_summary(model, arguments.out))
        if corpus.test is not None:
            print(f"Test it: primexmc evaluate {arguments.out} {arguments.data}")
    return 0


def _settings(arguments: argparse.Namespace) -> tuple[Settings, dict[str, Any]]:
    """Those that the data is read by, and the values of --set; a model's own where there is one to go on with."""
    chosen, values = chosen_settings(arguments)
    if arguments.from_model is None:
        return chosen, values
    from ..model.description import DESCRIPTION, read_description
    from ..training.continuing import continued_settings

    description = read_description(arguments.from_model)
    own = Settings.from_dict(description["settings"], str(arguments.from_model / DESCRIPTION))
    return continued_settings(own, arguments.preset, arguments.config, values)[0], values


def _summary(model: PrimeModel, place: Path) -> str:
    """Where the model is, how good it is, and what to do next."""
    scores = model.facts["validation"]
    shown = "  ".join(f"{name} {scores[name]:.1f}" for name in SHOWN if name in scores)
    lines = [f"The model is in {place} ({model.facts['epochs']} epochs, {model.facts['train_s']:.0f} s)."]
    if shown:
        lines.append(f"On validation, in percent: {shown}")
    lines.append(f"Try it: primexmc predict {place}    (type a text, then Enter; Ctrl-D ends)")
    return "\n".join(lines)
