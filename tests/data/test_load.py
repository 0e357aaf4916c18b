from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from primexmc.data import example_path
from primexmc.data.corpus import Corpus
from primexmc.errors import UserError

Write = Callable[[str, "str | bytes"], Path]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such file or directory"):
        Corpus.load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no data that can be read; expected trn\.json.* but it holds nothing"):
        Corpus.load(str(tmp_path))


def test_a_directory_with_other_things(write: Write) -> None:
    for number in range(10):
        directory = write(f"d/{number}.jpg", "x").parent
    with pytest.raises(UserError, match=r"but it holds 0\.jpg, 1\.jpg, .* and 2 more"):
        Corpus.load(directory)


def test_a_model_is_no_data(write: Write) -> None:
    write("d/train.csv", "text,labels\nx,y\n")
    with pytest.raises(UserError, match=r"this is a model; expected data"):
        Corpus.load(write("d/primexmc.json", "{}").parent)


def test_a_file_of_another_kind(write: Write) -> None:
    with pytest.raises(UserError, match=r"a\.docx: not a kind of file that can be read alone; expected \.csv, \.tsv"):
        Corpus.load(write("a.docx", "x"))


def test_the_embedded_example() -> None:
    corpus = Corpus.load(example_path())
    train, test = corpus.split("train"), corpus.split("test")
    assert (len(train), len(test), len(corpus.labels)) == (34_985, 9_183, 14_533)
    assert (train.positives.data == 1).all()
    assert not set(train.uids) & set(test.uids)
    assert "CC0 1.0" in (example_path() / "NOTICE").read_text()
