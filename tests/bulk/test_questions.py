"""Questions: lines from a stream that arrives in pieces of any size, and rows of tables."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primexmc.bulk.arriving import arriving_lines
from primexmc.bulk.questions import Columns, Question, batches_of_questions
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


def texts(batches):
    return [[question.text for question in batch] for batch in batches]


def put_on_stdin(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_batches_from_a_file_and_from_stdin(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_bytes(b"a\nb\n\nd\ne")
    assert texts(batches_of_questions(str(tmp_path / "x.txt"), 2)) == [["a", "b"], ["", "d"], ["e"]]
    put_on_stdin(monkeypatch, b"a\nb\n\nd\ne")
    batches = texts(batches_of_questions("-", 2))
    assert [text for batch in batches for text in batch] == ["a", "b", "", "d", "e"]
    assert max(map(len, batches)) <= 2


ROWS = [{"uid": "q1", "text": "red, boat", "not": "L1|L2"}, {"uid": "q2", "text": "", "not": ""}]
EXPECTED = [Question("red, boat", "q1", "uid", ["L1", "L2"]), Question("", "q2", "uid", [])]


def write_table(path):
    import pyarrow
    from pyarrow import parquet

    kind = path.suffix
    if kind == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif kind == ".jsonl":
        path.write_text("".join(json.dumps(row | {"not": row["not"].split("|")}) + "\n" for row in ROWS))
    else:
        with path.open("w", newline="") as stream:
            table = csv.DictWriter(stream, ROWS[0], delimiter="," if kind == ".csv" else "\t")
            table.writeheader()
            table.writerows(ROWS)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_rows_of_a_table(tmp_path, kind):
    write_table(tmp_path / f"x.{kind}")
    columns = Columns(filter="not")
    assert list(batches_of_questions(str(tmp_path / f"x.{kind}"), 9, columns=columns)) == [EXPECTED]
    (tmp_path / f"x.{kind}").rename(tmp_path / "other")
    assert list(batches_of_questions(str(tmp_path / "other"), 1, kind, columns)) == [[row] for row in EXPECTED]


def test_objects_from_stdin(monkeypatch):
    put_on_stdin(monkeypatch, b'{"id": 7, "text": "a"}\n\n{"id": 8, "text": null}\n')
    assert list(batches_of_questions("-", 9, "jsonl")) == [[Question("a", 7, "id"), Question("", 8, "id")]]
    put_on_stdin(monkeypatch, b'{"title": "a", "content": "b"}\n{"title": "c"\n')
    batches = batches_of_questions("-", 1, "jsonl")
    assert next(batches) == [Question("a b")]
    with pytest.raises(UserError, match="stdin, line 2: not valid JSON"):
        next(batches)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (Columns(), ["the text"]),
        (Columns(usual_text="name"), ["the name"]),
        (Columns(text="other"), ["another"]),
        (Columns(uid="name"), ["the text"]),
    ],
)
def test_which_column_is_the_text(tmp_path, columns, found):
    (tmp_path / "x.csv").write_text("name,text,other\nthe name,the text,another\n")
    [batch] = batches_of_questions(str(tmp_path / "x.csv"), 9, columns=columns)
    assert [question.text for question in batch] == found
    assert batch[0].uid == ("the name" if columns.uid else None)


@pytest.mark.parametrize(
    ("name", "columns", "sentence"),
    [
        ("x.csv", Columns(text="titel"), 'no column "titel"; its columns are uid, title.* Did you mean "title"'),
        ("x.csv", Columns(uid="sku"), 'no column "sku".*--uid-column'),
        ("x.csv", Columns(filter="not"), 'no column "not".*--filter-column'),
        ("y.csv", Columns(), 'no column "text"; its columns are a, b.*--text-column'),
        ("x.txt", Columns(text="title"), "lines have no columns"),
        ("", Columns(), "a directory"),
    ],
)
def test_what_cannot_be_found(tmp_path, name, columns, sentence):
    (tmp_path / "x.csv").write_text("uid,title\n1,a\n")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.txt").write_text("a\n")
    with pytest.raises(UserError, match=sentence):
        list(batches_of_questions(str(tmp_path / name), 9, columns=columns))


def test_parquet_needs_a_file():
    with pytest.raises(UserError, match="name the file"):
        list(batches_of_questions("-", 9, "parquet"))
