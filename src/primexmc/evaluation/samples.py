"""A few test queries to look at: chosen by their texts, never by how well somebody answers them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

import numpy as np

from ..data.corpus import Labels, Split

LONGEST_TEXT = 160


class SampledAnswer(TypedDict):
    """A query, the labels that a method names with whether each is right, and right ones that it does not name."""

    text: str
    predictions: list[tuple[str, bool]]
    missed: list[str]


def sample_rows(queries: Split, num_samples: int) -> list[int]:
    """Short queries with several labels (with fewer where there are none), taken at even distances."""
    num_labels_Q = np.diff(queries.positives.indptr)
    for at_least in (3, 2, 1):
        several = np.flatnonzero(num_labels_Q >= at_least).tolist()
        readable = [row for row in several if 0 < len(queries.texts[row]) <= LONGEST_TEXT]
        if readable:
            places = np.linspace(0, len(readable) - 1, min(num_samples, len(readable))).astype(int)
            return [readable[at] for at in places]
    return []


def sampled_answer(queries: Split, labels: Labels, row: int, ids: Iterable[int]) -> SampledAnswer:
    """By name; -1 is no label."""
    right, named = set(queries.positives[[row]].indices.tolist()), [int(label) for label in ids if label >= 0]
    return {
        "text": queries.texts[row],
        "predictions": [(labels.names[label], label in right) for label in named],
        "missed": [labels.names[label] for label in sorted(right - set(named))],
    }
