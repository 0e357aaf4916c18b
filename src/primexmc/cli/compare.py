"""`primexmc compare`: methods side by side."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from .options import add_settings_options

SENTENCE = "train and evaluate several methods on the same data, side by side"
EPILOG = """Methods of ours:   prime, prime-lite, prime-softmax
Published ones:    ngame, dexa, dpr, ance, dexml, dexml-pool, dexml-batch (in the same training loop)
Simple methods:    popularity, tfidf-neighbours, zero-shot (the encoder without training)
Other programs:    pecos-xrlinear-1, pecos-xrlinear-3, omikuji-parabel, omikuji-bonsai, bm25
                   (in a checkout of the repository, after `make peers`)

Recipes:           field, loss-terms, pool, positive-sampling, free-vectors, components, margins, centroids, network,
                   queries-per-label (the paper's tables and ablations), or a TOML file of your own

Each result is a row of DIR/field.json as soon as it is there; rows that were made with the same settings on the same
data are not made again, so a comparison that was stopped goes on where it was. Settings that you name hold for every
method. With --jobs a run that fails stops no other, and each process has its share of the CPU's threads; what they say
is in DIR/logs. docs/compare.md tells more.

examples:
  primexmc compare my-data/ --methods prime,ngame,popularity --out results
  primexmc compare gutenberg --methods prime,prime-softmax --preset gutenberg --seeds 3 --out results
  primexmc compare gutenberg --recipe loss-terms --seeds 2 --out results
  primexmc compare gutenberg wordnet --recipe loss-terms,margins --seeds 2 --jobs 8 --minutes 9 --out results
  primexmc compare gutenberg --methods prime,dexml --costs
  primexmc compare gutenberg --unseen --out results
  primexmc compare gutenberg --methods pecos-xrlinear-3,omikuji-bonsai,bm25 --out results"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", nargs="+", help="directories or files with a training and a test split")
    parser.add_argument("--methods", metavar="A,B", help="names (or TOML files) with commas between them; see below")
    parser.add_argument(
        "--recipe", metavar="A,B", help="experiments: their methods, or those of one that --methods name"
    )
    parser.add_argument(
        "--unseen", action="store_true", help="hold a tenth of the labels out and add them later (unseen.json)"
    )
    parser.add_argument("--costs", action="store_true", help="only count what a training step of each costs")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("primexmc-compare"),
        help="directory of field.json (primexmc-compare)",
    )
    parser.add_argument("--seeds", metavar="N", type=int, default=1, help="runs of each method, by seed (1)")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="so many trainings side by side (1)")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="begin no run after so long")
    parser.add_argument(
        "--modes",
        metavar="A,B",
        default="theta",
        help="how our methods predict: theta (default), memory, lexical, all; W, theta+W, W+memory with a classifier",
    )
    add_settings_options(parser)
    parser.add_argument("--quiet", action="store_true", help="show no training progress")


def run(arguments: argparse.Namespace) -> int:
    from ..compare.compare import compare, costs
    from ..compare.costs import costs_table
    from ..config import parse_overrides
    from ..errors import UserError

    if arguments.unseen:
        return _unseen(arguments)
    if arguments.methods is None and arguments.recipe is None:
        raise UserError("compare needs --methods or --recipe; `primexmc compare --help` lists both.")
    methods = None if arguments.methods is None else _names(arguments.methods)
    recipes = _names(arguments.recipe or "")
    if methods is not None and len(recipes) > 1:
        raise UserError("--methods choose from one recipe; give --recipe one name.")
    shared = {
        "preset": arguments.preset,
        "config": arguments.config,
        "settings": parse_overrides(arguments.set),
    }
    if arguments.costs:
        recipe = _the_one(recipes, "--recipe") if recipes else None
        print(costs_table(costs(_the_one(arguments.data, "DATA"), methods, recipe=recipe, **shared)))
        return 0
    compare(
        arguments.data,
        methods,
        recipe=recipes or None,
        out=arguments.out,
        jobs=arguments.jobs,
        minutes=arguments.minutes,
        modes=_names(arguments.modes),
        seeds=arguments.seeds,
        quiet=arguments.quiet,
        **shared,
    )
    return 0


def _unseen(arguments: argparse.Namespace) -> int:
    from ..compare.unseen import METHODS, unseen
    from ..config import parse_overrides
    from ..errors import UserError

    if arguments.recipe is not None or arguments.costs or arguments.seeds != 1 or arguments.modes != "theta":
        raise UserError("--unseen goes with --methods and settings alone; for another seed --set training.seed=1.")
    unseen(
        _the_one(arguments.data, "DATA"),
        METHODS if arguments.methods is None else _names(arguments.methods),
        out=arguments.out,
        preset=arguments.preset,
        config=arguments.config,
        settings=parse_overrides(arguments.set),
        quiet=arguments.quiet,
    )
    return 0


def _the_one(values: Sequence[str], name: str) -> str:
    from ..errors import UserError

    if len(values) != 1:
        raise UserError(f"--unseen and --costs take one {name}, not {len(values)}.")
    return values[0]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
