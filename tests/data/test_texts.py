from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primexmc.data.texts import Texts, TextsBuilder, text_hashes

LINES = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6), max_size=12)


@given(LINES)
def test_texts_are_the_list_that_they_were_made_of(lines: list[str]) -> None:
    texts = Texts.of(lines)
    assert list(texts) == lines
    assert len(texts) == len(lines)
    assert [texts[row] for row in range(len(lines))] == lines
    assert [texts[-row - 1] for row in range(len(lines))] == lines[::-1]
    assert list(texts[1:5:2]) == lines[1:5:2]
    assert texts.num_bytes.tolist() == [len(line.encode()) for line in lines]


@given(LINES, st.lists(st.integers(0, 1000), max_size=10))
def test_take_and_join(lines: list[str], numbers: list[int]) -> None:
    rows = [number % len(lines) for number in numbers] if lines else []
    texts = Texts.of(lines)
    taken = texts.take(np.array(rows, dtype=np.int64))
    assert list(taken) == [lines[row] for row in rows]
    assert list(texts.joined(taken)) == lines + [lines[row] for row in rows]


def test_more_texts_than_one_block_of_iteration() -> None:
    lines = [str(number) * (number % 5) for number in range(10_000)]
    assert list(Texts.of(lines)) == lines


def test_outside_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        Texts.of(["a"])[1]


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    builder = TextsBuilder()
    builder.add("a\ud800b")
    assert list(builder.finish()) == ["a?b"]


def test_hashes_tell_texts_apart_and_stay_the_same() -> None:
    hashes = text_hashes(["a", "b", "a", ""])
    assert hashes[0] == hashes[2]
    assert len(set(hashes.tolist())) == 3
    assert int(text_hashes(["query"])[0]) == 245654452968300411
