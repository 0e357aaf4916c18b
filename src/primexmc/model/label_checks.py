"""What can be wrong with labels that somebody adds, names or takes away: a sentence for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UserError, did_you_mean

FEW = 5000  # among so many uids a near one is looked for


def checked_texts(texts: Sequence[str], what: str, wanted: int | None = None) -> list[str]:
    """The same as a list; each has a word, and there are as many as wanted."""
    checked = _listed(texts, what)
    for number, text in enumerate(checked):
        if not isinstance(text, str) or not text or text.isspace():
            raise UserError(f"{what}[{number}] is {text!r}; expected a text with a word in it.")
    return _as_many(checked, what, wanted)


def new_uids(uids: Sequence[str], known: Iterable[str], wanted: int) -> list[str]:
    """The same as a list; none is there twice, and none is a label's already."""
    seen, taken = set[str](), set(known)
    for uid in checked_texts(uids, "uids", wanted):
        if uid in taken:
            raise UserError(f'there is a label with the uid "{uid}" already; a new label needs a uid of its own.')
        if uid in seen:
            raise UserError(f'the uid "{uid}" is there twice; every new label needs a uid of its own.')
        seen.add(uid)
    return list(uids)


def rows_of(uids: Iterable[str], known: Iterable[str]) -> npt.NDArray[np.int64]:
    """Where these labels are; each is named once."""
    row_of = {uid: row for row, uid in enumerate(known)}
    rows: dict[int, str] = {}
    for uid in _listed(uids, "uids"):
        if uid not in row_of:
            hint = did_you_mean(str(uid), row_of) if len(row_of) <= FEW else ""
            raise UserError(f'there is no label with the uid "{uid}".{hint}')
        if row_of[uid] in rows:
            raise UserError(f'the uid "{uid}" is named twice.')
        rows[row_of[uid]] = uid
    return np.array(list(rows), dtype=np.int64)


def checked_queries(queries: Sequence[Sequence[str]], uids: Sequence[str]) -> list[list[str]]:
    """A list of texts for each label, perhaps empty."""
    checked = _as_many(_listed(queries, "queries"), "queries", len(uids))
    return [checked_texts(own, f'queries of "{uid}"') for uid, own in zip(uids, checked, strict=True)]


def _listed(values: Iterable[Any], what: str) -> list[Any]:
    if isinstance(values, str):
        raise UserError(f"{what} is the text {values!r}; expected a list of texts.")
    return list(values)


def _as_many(values: list[Any], what: str, wanted: int | None) -> list[Any]:
    if wanted is not None and len(values) != wanted:
        raise UserError(f"{len(values)} {what} for {wanted} labels; expected as many.")
    return values
