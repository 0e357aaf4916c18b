"""`primexmc compare`: methods side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import add_settings_options

SENTENCE = "train and evaluate several methods on the same data, side by side"
EPILOG = """Methods of ours:   prime, prime-lite, prime-softmax
Published ones:    ngame, dexa, dpr, ance, dexml, dexml-pool, dexml-batch (in the same training loop)
Simple methods:    popularity, tfidf-neighbours, zero-shot (the encoder without training)
Other programs:    pecos-xrlinear-1, pecos-xrlinear-3, omikuji-parabel, omikuji-bonsai, bm25
                   (in a checkout of the repository, after `make peers`)

Each result is a row of DIR/field.json as soon as it is there; rows that were made with the same settings on the same
data are not made again, so a comparison that was stopped goes on where it was. Settings that you name hold for every
method. docs/compare.md tells more.

examples:
  primexmc compare my-data/ --methods prime,ngame,popularity --out results
  primexmc compare gutenberg --methods prime,prime-softmax --preset gutenberg --seeds 3 --out results
  primexmc compare gutenberg --methods pecos-xrlinear-3,omikuji-bonsai,bm25 --out results"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a directory or file with a training and a test split")
    parser.add_argument("--methods", metavar="A,B", required=True, help="names with commas between them; see below")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("primexmc-compare"),
        help="directory of field.json (primexmc-compare)",
    )
    parser.add_argument("--seeds", metavar="N", type=int, default=1, help="runs of each method, by seed (1)")
    parser.add_argument(
        "--modes", metavar="A,B", default="theta", help="how our methods predict: theta (default), the dual encoder"
    )
    add_settings_options(parser)
    parser.add_argument("--quiet", action="store_true", help="show no training progress")


def run(arguments: argparse.Namespace) -> int:
    from ..compare.compare import compare
    from ..config import parse_overrides

    compare(
        arguments.data,
        _names(arguments.methods),
        out=arguments.out,
        modes=_names(arguments.modes),
        seeds=arguments.seeds,
        preset=arguments.preset,
        config=arguments.config,
        settings=parse_overrides(arguments.set),
        quiet=arguments.quiet,
    )
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
