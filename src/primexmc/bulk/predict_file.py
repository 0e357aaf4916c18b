"""predict_file(): the best labels of every text of a file, into another file; in order, with bounded memory, and so
that a run which was killed can go on where it was."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..atomic import replace_file
from ..data.corpus import DataWarning
from ..errors import UserError
from ..model.selection import Selection
from .answers import Answers
from .asking import Asking, Digest, Wish
from .formats import Format, open_format
from .part import Part
from .per_query import QueryFilter
from .questions import kind_of

Progress = Callable[[int, int], None]  # rows that are done, and how many of them were done before


def predict_file(
    selection: Selection,
    source: str,
    place: Path,
    wish: Wish,
    *,
    filters: QueryFilter | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> int:
    """Writes `place` when all of it is there, and gives the number of texts. "-" is stdin.

    What is done so far lies beside it as PLACE.part; with `resume` it is continued.
    """
    format = open_format(wish.format, len(selection.model.labels), probability=wish.probability)
    if place.is_dir():
        raise UserError(f"{place}: a directory; expected the name of a file to write.")
    part = Part(place, _asked(selection, wish, filters, source), resume=resume)
    if part.was_there and not resume:
        warnings.warn(f"{part.path} of an earlier run is begun afresh; --resume would have continued it.", DataWarning)
    try:
        _append_all(part, format, Asking(selection, source, wish, filters), progress)
        _put_in_place(part, format, place)
        return part.rows
    except (UserError, KeyboardInterrupt, OSError) as error:
        raise _with_advice(error, part) from None
    finally:
        if part.noted_rows == 0:
            part.remove()
        part.close()


def predict_stream(
    selection: Selection,
    source: str,
    write: Callable[[str], Any],
    wish: Wish,
    *,
    filters: QueryFilter | None = None,
) -> None:
    """The same, text by text to wherever `write` brings it: a screen, a pipe, a device."""
    format = open_format(wish.format, len(selection.model.labels), probability=wish.probability)
    started = False
    for answers in Asking(selection, source, wish, filters).answers(skip=0, digest=Digest()):
        write((b"" if started else format.beginning(answers)).decode() + format.appended(answers).decode())
        started = True
    if not started:
        write(format.beginning(Answers(1, [], [])).decode())


def _asked(selection: Selection, wish: Wish, filters: QueryFilter | None, source: str) -> dict[str, Any]:
    """All that the rows depend on besides the texts, in the words of the options."""
    columns = wish.columns
    return {
        "model": selection.model.fingerprint(),
        "--mode": selection.model.mode_in_use,
        "--format": wish.format,
        "--top": wish.top,
        "--probability": wish.probability,
        "--threshold": selection.threshold,
        "--allow or --block": _hash(selection.blocked_B.tolist()),
        "--filter": None if filters is None else _hash(sorted(filters.of_row.items())),
        "--input-format": wish.input_format or kind_of(source),
        "set of columns": [columns.text, columns.uid, columns.filter],
    }


def _hash(value: object) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _append_all(part: Part, format: Format, asking: Asking, progress: Progress | None) -> None:
    digest, done_before = Digest(part.digest), part.rows
    started = not part.is_new
    for answers in asking.answers(part.rows, digest):
        content = format.appended(answers)
        if not started:
            content, started = format.beginning(answers) + content, True
        part.append(content, len(answers.questions), digest.hash.hexdigest())
        if progress is not None:
            progress(part.rows, done_before)
    if not started:
        part.stream.write(format.beginning(Answers(1, [], [])))
    part.note()


def _put_in_place(part: Part, format: Format, place: Path) -> None:
    """The finished file, in one step."""
    if format.is_text:
        os.replace(part.path, place)
    else:
        with replace_file(place) as new:
            format.make(part.path, new)
    part.remove()


def _with_advice(error: BaseException, part: Part) -> BaseException:
    """What is done is not lost; said where anything is."""
    if part.noted_rows == 0 or not isinstance(error, (UserError, KeyboardInterrupt)):
        return error
    reason = str(error) or "stopped."
    return type(error)(
        f"{reason} {part.noted_rows:,} texts are done; the same command with --resume goes on from there."
    )
