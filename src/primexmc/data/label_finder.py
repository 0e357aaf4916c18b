"""LabelFinder: labels by what people call them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..errors import UserError, did_you_mean
from .corpus import DataWarning, Labels

_TOO_MANY_TO_GUESS = 5000


class LabelFinder:
    """From a uid, or a name that any number of labels may share, to rows. A uid wins over another label's name."""

    def __init__(self, labels: Labels) -> None:
        self._of_uid = {uid: row for row, uid in enumerate(labels.uids)}
        self._of_name: dict[str, list[int]] = {}
        for row, name in enumerate(labels.names):
            self._of_name.setdefault(name, []).append(row)

    def find(self, word: str) -> list[int]:
        """All rows that are meant; none where the word is not known."""
        row = self._of_uid.get(word)
        return [row] if row is not None else self._of_name.get(word, [])

    def find_all(self, words: Iterable[str], place: str) -> list[int]:
        """The rows of all words, rising. Unknown words are noted; an error where all of them are unknown."""
        rows, unknown, num_words = set[int](), list[str](), 0
        for word in words:
            num_words += 1
            found = self.find(word)
            rows.update(found)
            if not found:
                unknown.append(word)
        if unknown and not rows:
            near = len(self._of_uid) < _TOO_MANY_TO_GUESS
            hint = did_you_mean(unknown[0], [*self._of_name, *self._of_uid]) if near else ""
            raise UserError(
                f'{place}: the model knows no label with the uid or name "{unknown[0]}"'
                f"{f', nor any other of the {num_words} named' if num_words > 1 else ''}.{hint}"
            )
        if unknown:
            warnings.warn(
                f'{place}: {len(unknown)} of {num_words} labels are not known to the model, "{unknown[0]}" first.',
                DataWarning,
                stacklevel=2,
            )
        return sorted(rows)
