"""Lines from a stream that arrives in pieces of any size."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primexmc.cli.texts_in import arriving_lines, batches_of_texts
from primexmc.data.corpus import DataWarning
from primexmc.errors import UserError


class Pieces:
    """A stream whose reads give these pieces, one each."""

    def __init__(self, pieces):
        self.pieces = list(pieces)

    def read1(self, _):
        return self.pieces.pop(0) if self.pieces else b""


def lines_of(text):
    """What a reader would call the lines, the slow way."""
    lines, line = [], ""
    for character in text:
        if character == "\n":
            lines.append(line)
            line = ""
        else:
            line += character
    return [*lines, line] if line else lines


@given(st.text(alphabet="ab \u2028\u00e9\U0001f600\n", max_size=40), st.lists(st.integers(1, 7), max_size=20))
def test_any_cut_gives_the_same_lines(text, sizes):
    content, pieces = text.encode(), []
    for size in [*sizes, len(content)]:
        pieces.append(content[:size])
        content = content[size:]
    found = [line for lines in arriving_lines(Pieces(piece for piece in pieces if piece)) for line in lines]
    assert found == lines_of(text)


def test_complete_lines_do_not_wait_for_the_next():
    stream = Pieces([b"one\ntw", b"o\nthree", b"\n"])
    assert next(arriving_lines(stream)) == ["one"]
    assert len(stream.pieces) == 2


def test_windows_ends_and_a_byte_order_mark():
    assert list(arriving_lines(Pieces([b"\xef\xbb\xbfone\r\n\r\ntwo\r\n"]))) == [["one", "", "two"]]


@pytest.mark.parametrize(("content", "place"), [(b"a\nb\xff\n", "line 2: not UTF-8"), (b"\0\n", "line 1: a zero")])
def test_what_is_no_text(content, place):
    with pytest.raises(UserError, match=place):
        list(arriving_lines(Pieces([content])))


def test_a_table_is_read_by_lines_with_a_warning(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"text,labels\na,b\n")
    with pytest.warns(DataWarning, match=r"x\.csv: a table by its name"):
        assert list(batches_of_texts(str(tmp_path / "x.csv"), 9)) == [["text,labels", "a,b"]]


def test_batches_from_a_file_and_from_stdin(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_bytes(b"a\nb\n\nd\ne")
    expected = [["a", "b"], ["", "d"], ["e"]]
    assert list(batches_of_texts(str(tmp_path / "x.txt"), 2)) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n\nd\ne")))
    batches = list(batches_of_texts("-", 2))
    assert [text for batch in batches for text in batch] == ["a", "b", "", "d", "e"]
    assert max(map(len, batches)) <= 2
