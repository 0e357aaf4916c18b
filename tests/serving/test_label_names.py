"""Labels by name, against a search that looks at one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from primexmc.serving.label_names import LabelNames

NAMES = ["Sea", "seafront", "North Sea", "overseas", "ship", "SEA", "Straße", "the sea, a ship", "", "seaship sea"]


def slowly(question, names, counts, among):
    words = question.casefold().split()
    whole = " ".join(words)
    found = []
    for row, name in enumerate(names):
        folded = name.casefold()
        if among[row] and all(word in folded for word in words):
            kind = 0 if folded == whole or not words else 1 if folded.startswith(whole) else 2
            found.append((kind, -counts[row], row))
    return [row for _, _, row in sorted((0 if not words else kind, count, row) for kind, count, row in found)]


@pytest.mark.parametrize("question", ["", "sea", "SEA ", "sea ship", "ship sea", "strasse", "nothing", "the sea,", " "])
@pytest.mark.parametrize("some", [False, True])
def test_as_found_slowly(question, some):
    counts = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    among = np.arange(len(NAMES)) % 2 == 0 if some else np.ones(len(NAMES), dtype=bool)
    found = LabelNames(NAMES, counts).find(question, among if some else None)
    assert found.tolist() == slowly(question, NAMES, counts, among)


def test_the_name_itself_comes_first():
    found = LabelNames(NAMES, np.array([1, 9, 9, 9, 9, 1, 9, 9, 9, 9])).find("sea")
    assert [NAMES[row] for row in found[:3]] == ["Sea", "SEA", "seafront"]
