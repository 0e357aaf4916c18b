"""Text files, plain or compressed, as numbered lines; whatever is wrong with one is said with file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from ..errors import UserError

COMPRESSIONS = ("", ".gz", ".zst", ".xz", ".bz2")
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end). Lines end at LF or CRLF only: U+2028 and its like are text."""
    for number, line in read_raw_lines(path):
        yield number, line.rstrip("\r\n")


def read_raw_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line with its end)."""
    number = 0
    try:
        with _open(path) as stream:
            for raw in stream:
                number += 1
                if number == 1 and raw.startswith(_BOM):
                    raw = raw[len(_BOM) :]
                line = raw.decode()
                if "\0" in line:
                    raise UserError(f"{path}, line {number}: a zero byte; this is no text file in UTF-8.")
                yield number, line
    except UnicodeDecodeError as error:
        raise UserError(_not_utf8(path, number, error)) from None
    except EOFError:
        raise UserError(
            f"{path}, after line {number}: the compressed file breaks off here; copy or download it again."
        ) from None
    except (zlib.error, lzma.LZMAError, OSError) as error:
        raise UserError(_unreadable(path, number, error)) from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number from 1, object) of a file with one JSON object a line; blank lines are passed over."""
    for number, line in read_lines(path):
        if line and not line.isspace():
            yield number, parse_object(line, path, number)


def parse_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """The object on one line; whatever else is there is an error with its place."""
    if number == 1 and line.lstrip().startswith("["):
        raise UserError(f"{path}, line 1: a JSON array; expected one object a line (jq -c '.[]' makes that).")
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = (
            f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
        )
        raise UserError(f"{path}, line {number}: not valid JSON ({reason}); expected one object a line.") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}, line {number}: expected a JSON object like {{...}}, not {line[:40]!r}.")
    return value


def without_suffixes(path: Path) -> tuple[str, str]:
    """("trn", ".json") for trn.json.gz."""
    name = path.name
    for ending in COMPRESSIONS[1:]:
        name = name.removesuffix(ending)
    stem, dot, kind = name.rpartition(".")
    return (stem, dot + kind.lower()) if stem else (name, "")


def found(directory: Path, *names: str) -> Path | None:
    """The first of these files that lies in the directory, compressed or not."""
    candidates = (directory / (name + ending) for name in names for ending in COMPRESSIONS)
    return next((path for path in candidates if path.is_file()), None)


def _open(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked by its extension."""
    if path.suffix.lower() == ".zst":
        return _open_zst(path)
    opener = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix.lower(), Path.open)
    return cast(IO[bytes], io.BufferedReader(cast(Any, opener)(path, "rb"), _BUFFER))


def _open_zst(path: Path) -> IO[bytes]:
    try:
        import pyarrow
    except ImportError:
        raise UserError(f"{path}: reading .zst needs pyarrow; `pip install pyarrow`, or unpack the file.") from None
    unpacked = pyarrow.CompressedInputStream(pyarrow.OSFile(str(path), "rb"), "zstd")
    return cast(IO[bytes], io.BufferedReader(unpacked, _BUFFER))


def _not_utf8(path: Path, number: int, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    if number == 1 and error.object[:2] in _UTF16:
        return f"{path}, line 1: UTF-16, not UTF-8; convert it first, for example with `iconv -f UTF-16 -t UTF-8`."
    return (
        f"{path}, line {number}: not UTF-8 text (byte 0x{byte:02x} at {error.start}); "
        f"convert it first, for example with `iconv -f LATIN1 -t UTF-8`."
    )


def _unreadable(path: Path, number: int, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: no such file."
    if isinstance(error, (PermissionError, IsADirectoryError)):
        return f"{path}: cannot be read ({error.strerror})."
    began = number > 0 or "CRC" in str(error) or "Truncated" in str(error)
    if not began and not (isinstance(error, OSError) and error.errno):
        return f"{path}: its name ends in {path.suffix} but it is not such a file ({error})."
    return f"{path}, after line {number}: cannot be read on ({error}); copy or download it again."
