"""`primexmc index`: an index for models with very many labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import add_set_option

SENTENCE = "build an index into a model, for quick search among very many labels"
EPILOG = """Below 200,000 labels exact search takes some milliseconds and needs no index. How many of the best 100
labels an index finds is measured when it is built; docs/search.md tells how to choose.

examples:
  primexmc index my-model
  primexmc index my-model --backend faiss --set search.recall=0.99
  primexmc index my-model --backend milvus
  primexmc index my-model --backend milvus --set search.milvus_uri=http://milvus.example:19530"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument(
        "--backend", choices=("auto", "exact", "faiss", "milvus"), help="what is built (default: search.backend)"
    )
    add_set_option(parser)


def run(arguments: argparse.Namespace) -> int:
    import torch

    from ..config import parse_overrides
    from ..model.index import write_index
    from ..model.storage import load_model

    values = parse_overrides(arguments.set)
    if arguments.backend is not None:
        values["search.backend"] = arguments.backend
    model = load_model(arguments.model, torch.device("cpu"))
    settings = model.settings.with_values(values, "--set").search
    description = write_index(model, arguments.model, settings)
    print(_told(description, arguments.model))
    return 0


def _told(description: dict[str, Any], model: Path) -> str:
    labels, facts = f"{description['num_labels']:,} labels", description["facts"]
    if description["backend"] == "exact":
        return f"{labels} are searched exactly; below 200,000 that is the default. --backend faiss builds an index."
    found = facts["recall"]
    megabytes = sum(file.stat().st_size for file in (model / "index").rglob("*") if file.is_file()) / 1e6
    return (
        f"{labels} in {model / 'index'} ({description['backend']}, {megabytes:,.1f} MB): it finds "
        f"{100 * found['recall']:.1f} % of the best {found['at']}, measured on {found['num_queries']} "
        f"{description['measured_on']}."
    )
