"""Lines of a stream as they arrive, without waiting for more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ..errors import UserError

BYTES_AT_ONCE = 1 << 20


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
