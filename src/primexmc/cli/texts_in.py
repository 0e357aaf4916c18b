"""The texts to predict for: a line each, from a file or from stdin, in batches."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ..data.corpus import DataWarning
from ..data.lines import read_lines, without_suffixes
from ..data.sources import TABLE_SUFFIXES
from ..errors import UserError

BYTES_AT_ONCE = 1 << 20


def batches_of_texts(file: str, size: int) -> Iterator[list[str]]:
    """At most `size` lines at a time. From stdin a batch is what has arrived: no answer waits for the next question."""
    if file == "-":
        for lines in arriving_lines(cast(BinaryIO, sys.stdin.buffer)):
            yield from _chunks(lines, size)
        return
    path = Path(file)
    if path.is_dir():
        raise UserError(f"{path}: a directory; expected a text file with one text a line.")
    if without_suffixes(path)[1] in TABLE_SUFFIXES:
        warnings.warn(f"{path}: a table by its name, but every line is read as a text.", DataWarning, stacklevel=2)
    yield from _chunks((line for _, line in read_lines(path)), size)


def arriving_lines(stream: BinaryIO) -> Iterator[list[str]]:
    """The complete lines of each piece that arrives; what follows the last line end counts as a line."""
    number, pieces = 0, list[bytes]()
    while block := stream.read1(BYTES_AT_ONCE):  # type: ignore[attr-defined]
        *_, rest = parts = block.rsplit(b"\n", 1)
        if len(parts) == 1:
            pieces.append(rest)
            continue
        lines = (b"".join(pieces) + parts[0]).split(b"\n")
        pieces = [rest]
        yield [_text(line, number + index) for index, line in enumerate(lines, start=1)]
        number += len(lines)
    if last := b"".join(pieces):
        yield [_text(last, number + 1)]


def _text(line: bytes, number: int) -> str:
    if b"\0" in line:
        raise UserError(f"stdin, line {number}: a zero byte; expected text in UTF-8.")
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise UserError(f"stdin, line {number}: not UTF-8 text (byte 0x{byte:02x} at {error.start}).") from None


def _chunks(lines: Iterator[str] | list[str], size: int) -> Iterator[list[str]]:
    source = iter(lines)
    while chunk := list(itertools.islice(source, size)):
        yield chunk
