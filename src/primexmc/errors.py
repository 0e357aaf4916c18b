"""The one error that is meant for users: a sentence that says where, what was expected, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something in the user's data, settings or files is wrong. The command line prints it and exits with 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean "x"?` for the nearest known word, or an empty string when none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{near[0]}"?' if near else ""
