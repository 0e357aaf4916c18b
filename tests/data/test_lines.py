from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from primexmc.data.lines import found, read_lines, read_objects, without_suffixes
from primexmc.errors import UserError

Write = Callable[[str, "str | bytes"], Path]
TEXT = "eins\nzwei für drei\n\nlast without end"


def lines(path: Path) -> list[str]:
    return [line for _, line in read_lines(path)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress], ids=["", ".gz", ".xz", ".bz2"])
def test_packed_or_not(tmp_path: Path, pack: Callable[[bytes], bytes], request: pytest.FixtureRequest) -> None:
    path = tmp_path / f"a.txt{request.node.callspec.id}"
    path.write_bytes(pack(TEXT.encode()))
    assert list(read_lines(path)) == list(enumerate(TEXT.split("\n"), start=1))


def test_zst(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.txt.zst"
    with pyarrow.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(TEXT.encode())
    assert lines(path) == TEXT.split("\n")
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(UserError, match=r"a\.txt\.zst.*cannot be read on.*again"):
        lines(path)
    path.write_bytes(b"this is no zst file at all")
    with pytest.raises(UserError, match=r"a\.txt\.zst.*not such a file"):
        lines(path)


def test_byte_order_mark_and_windows_ends(write: Write) -> None:
    assert lines(write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")) == ["one", "two"]


def test_only_line_feeds_end_lines(write: Write) -> None:
    text = "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg"
    assert lines(write("a.txt", text + "\nh")) == [text, "h"]


def test_latin_1_is_an_error_with_its_line(write: Write) -> None:
    with pytest.raises(UserError, match=r"a\.txt, line 2: not UTF-8 .*byte 0xfc at 1.*iconv"):
        lines(write("a.txt", "ok\nfür\n".encode("latin-1")))


def test_utf_16_is_called_by_its_name(write: Write) -> None:
    with pytest.raises(UserError, match=r"a\.txt, line 1: UTF-16.*iconv -f UTF-16"):
        lines(write("a.txt", "text\tlabels\n".encode("utf-16")))


@pytest.mark.parametrize("raw", [b"\x00\x01\x02", "text".encode("utf-16-le")])
def test_binary_is_an_error_with_its_line(write: Write, raw: bytes) -> None:
    with pytest.raises(UserError, match=r"a\.txt, line 1: .*(not UTF-8|zero byte)"):
        lines(write("a.txt", raw))


def test_a_packed_file_that_breaks_off(write: Write) -> None:
    path = write("a.txt.gz", "".join(f"line {number}\n" for number in range(1000)))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"a\.txt\.gz, after line \d+: .*breaks off"):
        lines(path)


def test_a_packed_file_that_is_damaged(write: Write) -> None:
    path = write("a.txt.gz", "".join(f"line {number}\n" for number in range(1000)))
    raw = bytearray(path.read_bytes())
    raw[-6] ^= 255  # in the checksum
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"a\.txt\.gz, after line .*: cannot be read on"):
        lines(path)


@pytest.mark.parametrize("name", ["a.txt.xz", "a.txt.bz2"])
def test_a_name_that_lies(write: Write, name: str) -> None:
    with pytest.raises(UserError, match=rf"{name}: its name ends in .* not such a file"):
        lines(write(name, "plain text"))


def test_a_gz_name_that_lies(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_text("plain text")
    with pytest.raises(UserError, match=r"a\.gz: its name ends in \.gz but it is not such a file"):
        lines(tmp_path / "a.gz")


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.txt: no such file"):
        lines(tmp_path / "nowhere.txt")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)"):
        lines(tmp_path)


def test_objects(write: Write) -> None:
    assert list(read_objects(write("a.json", '{"a": 1}\n\n  \n{"a": "\\u2028"}\n'))) == [
        (1, {"a": 1}),
        (4, {"a": "\u2028"}),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"a": 1}\n{"a": \n', r"line 2: not valid JSON \(Expecting value at column 7\)"),
        ('{"a": 1}\n[1]\n', r"line 2: expected a JSON object"),
        ('[{"a": 1}]\n', r"line 1: a JSON array.*jq"),
        ('[\n{"a": 1}\n]\n', r"line 1: a JSON array"),
        ("[" * 100_000, "line 1"),
    ],
)
def test_objects_that_are_none(write: Write, content: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        list(read_objects(write("a.json", content)))


def test_names(write: Write) -> None:
    assert without_suffixes(Path("x/trn.json.gz")) == ("trn", ".json")
    assert without_suffixes(Path("my.data.CSV")) == ("my.data", ".csv")
    assert without_suffixes(Path("plain")) == ("plain", "")
    path = write("trn.json.gz", "")
    assert found(path.parent, "trn.jsonl", "trn.json") == path
    assert found(path.parent, "tst.json") is None
