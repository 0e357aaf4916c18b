"""`primexmc predict`: texts in, labels out, a bounded number at a time."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .options import add_device_option, add_mode_option

if TYPE_CHECKING:
    from ..bulk.asking import Wish
    from ..bulk.per_query import QueryFilter
    from ..model.model import PrimeModel
    from ..model.selection import Selection

FORMATS = ("jsonl", "tsv", "npz", "parquet")
FILES_ONLY = ("npz", "parquet")  # nothing for a screen
KINDS = ("lines", "jsonl", "csv", "tsv", "parquet")
LAST_WORD = "file"
SENTENCE = "name the best labels of texts: lines, JSONL, CSV, TSV or Parquet"
EPILOG = """Input, by the ending of FILE or by --input-format: a text a line, or a table. A table's texts are in the
column text (or title and content; --text-column names another); a column uid or id is carried through. An empty text
gets no labels, so that rows stay aligned.

Formats:
  jsonl    {"text": ..., "labels": [{"label": ..., "uid": ..., "id": ..., "score": ...}, ...]} a line, best label first
  tsv      a header, then one prediction a line: query (the text's number, from 1), rank, score, uid, label, text;
           tabs within a text become spaces
  npz      scipy's csr matrix of scores, texts x labels
  parquet  the columns query, text and labels (a list of structs); needs pyarrow

What --out names appears when it is complete. Until then it grows as FILE.part; after a kill or an error the same
command with --resume goes on from there, without repeating or losing a row.

Files of labels have one a line, by uid or name. --filter FILE has lines "row label": never predict this label for this
text, given by its number from 1, or by its uid where the input has uids.

examples:
  echo "wireless mouse with usb receiver" | primexmc predict my-model --top 3
  primexmc predict my-model products.csv --text-column title --out labels.parquet --resume
  primexmc predict my-model texts.txt.gz --format npz --out scores.npz --top 100
  primexmc predict my-model texts.jsonl --probability --threshold 0.5 --block retired.txt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("file", metavar="FILE", nargs="?", help='texts; "-" or none: stdin')
    parser.add_argument("--top", metavar="N", type=int, default=5, help="labels a text (5)")
    parser.add_argument("--format", choices=FORMATS, help="by the name of --out, else jsonl")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there instead of to stdout")
    parser.add_argument("--resume", action="store_true", help="go on where a run that was stopped left --out")
    parser.add_argument("--batch-size", metavar="N", type=int, default=256, help="texts encoded together (256)")
    parser.add_argument("--input-format", choices=KINDS, help="what FILE is; by its ending, else lines")
    parser.add_argument("--text-column", metavar="NAME", help="column of the texts")
    parser.add_argument("--uid-column", metavar="NAME", help="column that is carried through (uid or id, if there)")
    parser.add_argument("--threshold", metavar="X", type=float, help="only labels with at least this score")
    parser.add_argument(
        "--probability", action="store_true", help="also how likely each label is right; --threshold is then one of it"
    )
    add_mode_option(parser)
    parser.add_argument("--allow", metavar="FILE", type=Path, help="predict only the labels in it")
    parser.add_argument("--block", metavar="FILE", type=Path, help="never predict the labels in it")
    parser.add_argument("--filter", metavar="FILE", type=Path, help="never predict these labels for these texts")
    parser.add_argument("--filter-column", metavar="NAME", help="the same as a column of the input: label uids")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    format, source = _format(arguments), arguments.file or "-"
    from ..bulk.predict_file import predict_file, predict_stream
    from ..model.model import PrimeModel

    model = PrimeModel.load(arguments.model, arguments.device)
    model.mode = arguments.mode or model.mode
    wish, selection, filters = _wish(arguments, model, format), _selection(arguments, model), _filters(arguments, model)
    if source == "-" and sys.stdin.isatty():
        print("Type a text, then Enter. Ctrl-D ends.", file=sys.stderr)
    if arguments.out is None and format in FILES_ONLY:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / f"labels.{format}"
            predict_file(selection, source, file, wish, filters=filters)
            sys.stdout.buffer.write(file.read_bytes())
    elif arguments.out is None:
        predict_stream(selection, source, _Flushed(sys.stdout), wish, filters=filters)
    elif arguments.out.exists() and not (arguments.out.is_file() or arguments.out.is_dir()):
        with arguments.out.open("w", encoding="utf-8") as device:
            predict_stream(selection, source, _Flushed(device), wish, filters=filters)
    else:
        from .rate import Rate

        with Rate("texts") as rate:
            predict_file(
                selection,
                source,
                arguments.out,
                wish,
                filters=filters,
                resume=arguments.resume,
                progress=rate,
            )
    return 0


def _wish(arguments: argparse.Namespace, model: PrimeModel, format: str) -> Wish:
    from ..bulk.asking import Wish
    from ..bulk.questions import Columns

    usual = model.settings.data.text_column
    columns = Columns(arguments.text_column, arguments.uid_column, arguments.filter_column, usual_text=usual)
    return Wish(
        top=arguments.top,
        probability=arguments.probability,
        format=format,
        batch_size=arguments.batch_size,
        input_format=arguments.input_format,
        columns=columns,
    )


def _selection(arguments: argparse.Namespace, model: PrimeModel) -> Selection:
    from ..model.selection import Selection

    if arguments.probability:
        model.probabilities([[]])  # an error now, where it has none
    return Selection(
        model,
        allowed=None if arguments.allow is None else _lines(arguments.allow),
        blocked=() if arguments.block is None else _lines(arguments.block),
        threshold=arguments.threshold,
        by_probability=arguments.probability,
    )


def _filters(arguments: argparse.Namespace, model: PrimeModel) -> QueryFilter | None:
    if arguments.filter is None and arguments.filter_column is None:
        return None
    from ..bulk.per_query import QueryFilter

    return QueryFilter(model.labels, arguments.filter)


def _lines(file: Path) -> list[str]:
    from ..data.lines import read_lines

    return [line.strip() for _, line in read_lines(file) if line and not line.isspace()]


class _Flushed:
    """Writes to a stream, and sees to it that answers go out at once."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __call__(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _format(arguments: argparse.Namespace) -> str:
    """The format asked for, after a look at the numbers."""
    from ..errors import UserError

    for option in ("top", "batch_size"):
        if getattr(arguments, option) < 1:
            raise UserError(f"--{option.replace('_', '-')} is at least 1, not {getattr(arguments, option)}.")
    out = arguments.out
    if arguments.resume and out is None:
        raise UserError("--resume goes on with a file; name it with --out.")
    by_name = out.suffix.lstrip(".").lower() if out is not None else ""
    format: str = arguments.format or (by_name if by_name in FORMATS else "jsonl")
    to_screen = sys.stdout.isatty() if out is None else out.exists() and not (out.is_file() or out.is_dir())
    if format in FILES_ONLY and to_screen:
        raise UserError(f"--format {format} is not for the screen; name a file with --out.")
    return format
