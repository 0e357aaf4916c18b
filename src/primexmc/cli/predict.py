"""`primexmc predict`: texts in, labels out, a bounded number at a time."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from .options import add_device_option

if TYPE_CHECKING:
    from ..model.model import PrimeModel

FORMATS = ("jsonl", "tsv", "npz", "parquet")
SENTENCE = "name the best labels of texts, one text a line"
EPILOG = """Formats:
  jsonl    {"text": ..., "labels": [{"label": ..., "uid": ..., "id": ..., "score": ...}, ...]} a line, best label first
  tsv      a header, then one prediction a line: query (the text's line, from 1), rank, score, uid, label, text;
           tabs within a text become spaces
  npz      scipy's csr matrix of scores, texts x labels; needs --out
  parquet  the columns query, text and labels (a list of structs); needs --out and pyarrow
An empty line is a text without labels, so that lines stay aligned. What --out names appears when it is complete.

examples:
  echo "wireless mouse with usb receiver" | primexmc predict my-model --top 3
  primexmc predict my-model texts.txt --out labels.tsv
  primexmc predict my-model texts.txt.gz --format npz --out scores.npz --top 100"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help='a text a line in UTF-8; "-" or none: stdin'
    )
    parser.add_argument("--top", metavar="N", type=int, default=5, help="labels a text (5)")
    parser.add_argument("--format", choices=FORMATS, help="by the name of --out, else jsonl")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there instead of to stdout")
    parser.add_argument("--batch-size", metavar="N", type=int, default=256, help="texts encoded together (256)")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    format = _format(arguments)
    from ..model.model import PrimeModel

    model = PrimeModel.load(arguments.model, arguments.device)
    with ExitStack() as stack:
        if arguments.out is not None:
            from ..atomic import replace_file

            _write(model, arguments, format, stack.enter_context(replace_file(arguments.out)))
        else:
            _write(model, arguments, format, None)
    return 0


def _write(model: PrimeModel, arguments: argparse.Namespace, format: str, place: Path | None) -> None:
    from .texts_in import batches_of_texts
    from .writers import open_writer

    if arguments.file == "-" and sys.stdin.isatty():
        print("Type a text, then Enter. Ctrl-D ends.", file=sys.stderr)
    with open_writer(format, place, num_labels=len(model.labels)) as writer:
        for texts in batches_of_texts(arguments.file, arguments.batch_size):
            writer.write(texts, model.predict(texts, arguments.top))


def _format(arguments: argparse.Namespace) -> str:
    """The format asked for, after a look at the numbers."""
    from ..errors import UserError

    for option in ("top", "batch_size"):
        if getattr(arguments, option) < 1:
            raise UserError(f"--{option.replace('_', '-')} is at least 1, not {getattr(arguments, option)}.")
    out = arguments.out
    by_name = out.suffix.lstrip(".").lower() if out is not None else ""
    format: str = arguments.format or (by_name if by_name in FORMATS else "jsonl")
    if format in ("npz", "parquet") and out is None:
        raise UserError(f"--format {format} is not for the screen; name a file with --out.")
    return format
