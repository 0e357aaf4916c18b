"""`primexmc labels`: labels that come and go, in a model that is there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .options import add_device_option

if TYPE_CHECKING:
    from ..model.model import PrimeModel

SENTENCE = "list, add, remove or rename a model's labels, without training"
EPILOG = """add     FILE: a table with the columns uid, name, text (or content), as for training data, or a .txt
        with a label a line; --queries FILE: a table of example queries with the columns text and labels
remove  FILE: a uid a line
rename  FILE: a table as for add; the uids say which labels get the new names and texts
update  FILE: a table of more example queries, with the columns text and labels (by uid or name)
list    every label as uid, tab, name, tab, number of training queries

The model is replaced when the changed one is complete; --out writes the changed one elsewhere. Ids in predictions are
rows: new labels come last, and those behind a removed one move up; uids stay. docs/labels.md tells more.

examples:
  primexmc labels my-model add new-products.csv
  primexmc labels my-model add new-products.csv --queries examples.csv
  primexmc labels my-model remove sold-out.txt --out smaller-model
  primexmc labels my-model list | head"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("change", metavar="CHANGE", choices=[*CHANGES, "list"], help=", ".join([*CHANGES, "list"]))
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="what to change; see below")
    parser.add_argument("--queries", metavar="FILE", type=Path, help="add: example queries of the new labels")
    parser.add_argument("--out", metavar="MODEL", type=Path, help="write the changed model there")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..errors import UserError

    if arguments.change == "list":
        return _list(arguments)
    if arguments.file is None:
        raise UserError(f"`labels MODEL {arguments.change}` needs a FILE; `primexmc labels --help` tells which.")
    if arguments.queries is not None and arguments.change != "add":
        raise UserError("--queries goes with add; `update FILE` takes more queries of labels that are there.")
    from ..model.description import TRAINING, refuse_other_directory
    from ..model.model import PrimeModel

    place = arguments.out or arguments.model
    if (place / TRAINING).exists():
        raise UserError(f"{place}: holds an unfinished training; finish it first, or name another place with --out.")
    model = PrimeModel.load(arguments.model, arguments.device)
    refuse_other_directory(place)
    done = CHANGES[arguments.change](model, arguments)
    model.save(place)
    print(f"{place}: {done}; {len(model.labels):,} labels.")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from ..errors import UserError
    from ..model.description import read_description
    from ..model.label_list import read_labels

    if arguments.file or arguments.queries or arguments.out:
        raise UserError("list takes no files.")
    read_description(arguments.model)
    labels, counts_L = read_labels(arguments.model)
    for uid, name, count in zip(labels.uids, labels.names, counts_L.tolist(), strict=True):
        print("\t".join(" ".join(cell.split()) for cell in (uid, name, str(count))))
    return 0


def _add(model: PrimeModel, arguments: argparse.Namespace) -> str:
    from ..data.changes import read_label_queries, read_new_labels

    new = read_new_labels(arguments.file)
    queries = read_label_queries(arguments.queries, new, model.settings.data) if arguments.queries else None
    model.add_labels(list(new.texts), list(new.uids), list(new.names), queries)
    examples = f" with {sum(map(len, queries)):,} example queries" if queries else ""
    return f"{len(new):,} labels added{examples}"


def _remove(model: PrimeModel, arguments: argparse.Namespace) -> str:
    from ..data.changes import read_uids

    uids = read_uids(arguments.file)
    model.remove_labels(uids)
    return f"{len(uids):,} labels removed"


def _rename(model: PrimeModel, arguments: argparse.Namespace) -> str:
    from ..data.changes import read_new_labels

    new = read_new_labels(arguments.file)
    uids = list(new.uids)
    model.rename_labels(dict(zip(uids, new.texts, strict=True)), dict(zip(uids, new.names, strict=True)))
    return f"{len(uids):,} labels renamed"


def _update(model: PrimeModel, arguments: argparse.Namespace) -> str:
    from ..data.changes import read_label_queries

    queries = read_label_queries(arguments.file, model.labels, model.settings.data)
    given = {uid: own for uid, own in zip(model.labels.uids, queries, strict=True) if own}
    model.update_labels(given)
    return f"{sum(map(len, given.values())):,} queries for {len(given):,} labels added"


CHANGES: dict[str, Callable[[PrimeModel, argparse.Namespace], str]] = {
    "add": _add,
    "remove": _remove,
    "rename": _rename,
    "update": _update,
}
