"""Part: a file while it grows. Killed at any moment, it can be continued without a row lost or doubled.

Beside FILE lie FILE.part, to which bytes are only appended, and FILE.part.json, the note that says up to which byte
and row it is good. The bytes are on disk before the note is; whatever follows the noted byte is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic import replace_file
from ..errors import UserError

SECONDS_BETWEEN_NOTES = 1.0


class Part:
    """`asked` is what the rows depend on: a part that was asked for something else is not continued."""

    def __init__(self, place: Path, asked: Mapping[str, Any], *, resume: bool) -> None:
        self.place, self.asked = place, dict(asked)
        self.path, self.note_path = (place.with_name(place.name + ending) for ending in (".part", ".part.json"))
        place.parent.mkdir(parents=True, exist_ok=True)
        self.was_there = self.path.exists() and self.note_path.exists()
        self.stream = self.path.open("ab")
        self._lock()
        noted = self._noted() if resume and self.was_there else None
        self.rows: int = noted["rows"] if noted else 0
        self.digest: str = noted["texts"] if noted else ""
        self.stream.truncate(noted["bytes"] if noted else 0)
        if noted is None:
            self.note_path.unlink(missing_ok=True)
        self.noted_rows, self.noted_at = self.rows, -SECONDS_BETWEEN_NOTES

    @property
    def is_new(self) -> bool:
        return self.rows == 0

    def append(self, content: bytes, rows: int, digest: str) -> None:
        """Takes whole rows; `digest` stands for all texts so far. Noted every so often, the first time at once."""
        self.stream.write(content)
        self.rows, self.digest = self.rows + rows, digest
        if time.monotonic() - self.noted_at >= SECONDS_BETWEEN_NOTES:
            self.note()

    def note(self) -> None:
        """From here on a run can go on."""
        self.stream.flush()
        os.fsync(self.stream.fileno())
        note = {"rows": self.rows, "bytes": self.stream.tell(), "texts": self.digest, "asked": self.asked}
        with replace_file(self.note_path) as file:
            file.write_text(json.dumps(note, ensure_ascii=False), encoding="utf-8")
        self.noted_rows, self.noted_at = self.rows, time.monotonic()

    def remove(self) -> None:
        """Nothing of it is left."""
        self.note_path.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.stream.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self.stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.stream.close()
            raise UserError(f"{self.path}: another run is writing it; wait for that one, or stop it.") from None

    def _noted(self) -> dict[str, Any]:
        """Where to go on."""
        try:
            note: dict[str, Any] = json.loads(self.note_path.read_text(encoding="utf-8"))
            different = [key for key, value in self.asked.items() if note["asked"].get(key) != value]
            too_short = os.fstat(self.stream.fileno()).st_size < int(note["bytes"])
        except (ValueError, KeyError, TypeError, AttributeError):
            too_short, different = True, []
        if too_short:
            raise UserError(f"{self.note_path}: damaged; run without --resume to begin afresh.")
        if different:
            raise UserError(
                f"{self.path} was begun with another {different[0]}; run with the same one, or without --resume to "
                "begin afresh."
            )
        return note
