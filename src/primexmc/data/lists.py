"""A corpus from Python lists."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

from ..errors import UserError
from .corpus import Corpus, Labels
from .splits import SplitBuilder
from .texts import Texts

_SHAPE = 'expected a list of label names like ["red", "blue"]'


def from_lists(
    texts: Sequence[str],
    labels: Sequence[Iterable[str] | Iterable[int]],
    label_texts: Mapping[str, str] | Sequence[str] | None = None,
) -> Corpus:
    """`Corpus.from_lists`. Names without a text of their own are their own text."""
    if len(texts) != len(labels):
        raise UserError(f"{len(texts)} texts but {len(labels)} lists of labels; expected one list of labels a text.")
    known = dict.fromkeys(label_texts or ())
    index = {name: row for row, name in enumerate(known)}
    if label_texts is not None and len(index) != len(label_texts):
        index = _first_rows(label_texts)
    num_texts, num_fixed = len(label_texts or ()), isinstance(label_texts, Sequence)
    builder = SplitBuilder("texts", unit="row")
    for row, (text, names) in enumerate(zip(texts, labels, strict=True)):
        if not isinstance(text, str):
            raise UserError(f"texts[{row}] is {text!r}; expected a text.")
        builder.add_query(row, None, text.strip())
        builder.add_labels(row, _indices(names, row, index, num_texts, num_fixed))
    return Corpus("lists", _labels(label_texts, index), train=builder.finish(max(num_texts, len(index))))


def _indices(names: Iterable[str | int], row: int, index: dict[str, int], num_texts: int, fixed: bool) -> list[int]:
    if isinstance(names, str):
        raise UserError(f"labels[{row}] is the text {names!r}; {_SHAPE}.")
    try:
        return [_index_of(name, row, index, num_texts, fixed) for name in names]
    except TypeError:
        raise UserError(f"labels[{row}] is {names!r}; {_SHAPE}.") from None


def _index_of(name: str | int, row: int, index: dict[str, int], num_texts: int, fixed: bool) -> int:
    if isinstance(name, str):
        if fixed and name not in index:
            raise UserError(f'labels[{row}] has "{name}", which is not in label_texts.')
        return index.setdefault(name, max(len(index), num_texts))
    number = operator.index(name)
    if not fixed:
        raise UserError(f"labels[{row}] has the number {number}; numbers need label_texts as the list they point into.")
    if not 0 <= number < num_texts:
        raise UserError(f"labels[{row}] has label {number}; expected 0 to {num_texts - 1}, the places in label_texts.")
    return number


def _first_rows(label_texts: Iterable[str]) -> dict[str, int]:
    first: dict[str, int] = {}
    for row, text in enumerate(label_texts):
        first.setdefault(text, row)
    return first


def _labels(label_texts: Mapping[str, str] | Sequence[str] | None, index: dict[str, int]) -> Labels:
    if isinstance(label_texts, Sequence):
        names = Texts.of(label_texts)
        unique = len(index) == len(names)
        return Labels(names if unique else Texts.of(map(str, range(len(names)))), names, names)
    names = Texts.of(index)
    return Labels(names, names, Texts.of((label_texts or {}).get(name, name) for name in index))
