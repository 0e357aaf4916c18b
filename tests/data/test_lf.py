from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from primexmc.config import DataSettings
from primexmc.data.corpus import Corpus, DataWarning
from primexmc.errors import UserError

Write = Callable[[str, "str | bytes"], Path]
Row = dict[str, Any]
LABELS: list[Row] = [
    {"uid": "l0", "title": "Red", "content": "a warm colour"},
    {"uid": "l1", "title": "same name"},
    {"uid": "l2", "title": "same name", "content": " "},
]
TRAIN: list[Row] = [
    {"uid": "q0", "title": " one ", "content": "  more", "target_ind": [2, 0], "target_rel": [0.5, 2]},
    {"uid": "q1", "title": "two", "content": "", "target_ind": [1]},
]
TEST: list[Row] = [{"uid": "t0", "title": "three", "target_ind": [0, 1], "target_rel": [1.0, 1.0]}]


def json_lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture
def lf(write: Write) -> Callable[..., Path]:
    def write_lf(ending: str = ".json", **parts: list[Row] | None) -> Path:
        for part, rows in {"trn": TRAIN, "tst": TEST, "lbl": LABELS, **parts}.items():
            if rows is not None:
                directory = write(f"set/{part}{ending}", json_lines(rows)).parent
        return directory

    return write_lf


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".jsonl"])
def test_an_lf_directory(lf: Callable[..., Path], ending: str) -> None:
    corpus = Corpus.load(lf(ending))
    assert corpus.name == "set"
    assert list(corpus.labels.uids) == ["l0", "l1", "l2"]
    assert list(corpus.labels.names) == ["Red", "same name", "same name"]
    assert list(corpus.labels.texts) == ["Red a warm colour", "same name", "same name"]
    train = corpus.split("trn")
    assert list(train.texts) == ["one more", "two"]
    assert list(train.uids) == ["q0", "q1"]
    assert train.positives.toarray().tolist() == [[2, 0, 0.5], [0, 1, 0]]
    assert train.filtered is None
    assert corpus.split("test").positives.toarray().tolist() == [[1, 1, 0]]
    assert corpus.val is None


def test_val_and_filters(lf: Callable[..., Path], write: Write) -> None:
    write("set/filter_labels_train.txt", "0 1\n1 2\n\n1 2\n")
    write("set/filter_labels_test.txt", "")
    corpus = Corpus.load(lf(val=TEST))
    train, test = corpus.split("train"), corpus.split("tst")
    assert train.filtered is not None
    assert train.filtered.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert test.filtered is not None
    assert test.filtered.shape == (1, 3)
    assert test.filtered.nnz == 0
    assert corpus.split("val").filtered is None
    assert list(corpus.split("val").texts) == ["three"]


@pytest.mark.parametrize("line", ["0", "0 1 2", "a b", "0 -1", "0.5 1"])
def test_broken_filter_lines(lf: Callable[..., Path], write: Write, line: str) -> None:
    write("set/filter_labels_train.txt", f"0 1\n{line}\n")
    with pytest.raises(UserError, match=r'filter_labels_train\.txt, line 2: expected "query_row label"'):
        Corpus.load(lf())


@pytest.mark.parametrize("line", ["2 0", "0 3"])
def test_filters_out_of_range(lf: Callable[..., Path], write: Write, line: str) -> None:
    write("set/filter_labels_train.txt", f"{line}\n")
    with pytest.raises(UserError, match=r"line 1: .* out of range; there are 2 queries and 3 labels"):
        Corpus.load(lf())


def test_missing_uids_are_row_numbers(lf: Callable[..., Path]) -> None:
    corpus = Corpus.load(lf(trn=[{"title": "x", "target_ind": [0]}, {"uid": 7, "title": "y", "target_ind": [1]}]))
    assert list(corpus.split("train").uids) == ["0", "7"]
    corpus = Corpus.load(lf(lbl=[{"title": "a"}, {"title": "b"}, {"title": "c"}]))
    assert list(corpus.labels.uids) == ["0", "1", "2"]


def test_texts_keep_every_character(lf: Callable[..., Path]) -> None:
    text = "Größe \u2028 中文 \U0001f600"
    corpus = Corpus.load(lf(trn=[{"title": text, "target_ind": [0]}]))
    assert list(corpus.split("train").texts) == [text]


def test_a_label_twice_in_a_row_keeps_its_larger_relevance(lf: Callable[..., Path]) -> None:
    rows = [{"title": "x", "target_ind": [1, 1, 0], "target_rel": [0.5, 0.75, 1]}]
    assert Corpus.load(lf(trn=rows)).split("train").positives.toarray().tolist() == [[1, 0.75, 0]]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"target_ind": [3]}, "line 3: label 3 is out of range; there are 3 labels, numbered 0 to 2"),
        ({"target_ind": [-1]}, "line 3: label -1 is out of range"),
        ({"target_ind": [2**40]}, "line 3: labels are indices"),
        ({"target_ind": [0.5]}, "line 3: labels are indices"),
        ({"target_ind": ["l0"]}, "line 3: labels are indices"),
        ({"target_ind": 1}, "line 3: target_ind and target_rel are lists"),
        ({"target_ind": [1], "target_rel": 1.0}, "line 3: target_ind and target_rel are lists"),
        ({}, "line 3: no target_ind"),
        ({"target_ind": [0, 1], "target_rel": [1.0]}, "line 3: 2 labels but 1 relevance values"),
        ({"target_ind": [0], "target_rel": ["much"]}, "line 3: labels are indices and relevance values are numbers"),
        ({"target_ind": [0], "target_rel": [-1]}, r"line 3: relevance -1\.0 is not a number of at least 0"),
        ({"target_ind": [0], "target_rel": [float("nan")]}, "line 3: relevance nan is not a number"),
        ({"target_ind": [0], "title": ["x"]}, "line 3: title is a list; expected a text"),
    ],
)
def test_broken_queries_are_named_with_their_line(lf: Callable[..., Path], row: Row, sentence: str) -> None:
    with pytest.raises(UserError, match=rf"trn\.json, {sentence}"):
        Corpus.load(lf(trn=[*TRAIN, {"title": "x", **row}]))


def test_blank_lines_do_not_shift_line_numbers(lf: Callable[..., Path], write: Write) -> None:
    directory = lf()
    write("set/trn.json", "\n" + json_lines(TRAIN) + "\n" + json_lines([{"title": "x", "target_ind": [9]}]))
    with pytest.raises(UserError, match=r"trn\.json, line 5: label 9"):
        Corpus.load(directory)


def test_a_duplicate_label_uid_names_both_lines(lf: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r'lbl\.json, line 4: label uid "l1" was already on line 2'):
        Corpus.load(lf(lbl=[*LABELS, {"uid": "l1", "title": "new"}]))


def test_rows_without_text_or_labels_are_counted_once_and_kept(lf: Callable[..., Path]) -> None:
    rows = [
        *TRAIN,
        {"title": " ", "target_ind": [0]},
        {"title": "x", "target_ind": []},
        {"title": "y", "target_ind": None},
    ]
    with pytest.warns(DataWarning) as caught:
        corpus = Corpus.load(lf(trn=rows))
    assert [str(one.message) for one in caught if "trn" in str(one.message)] == [
        f"{lf() / 'trn.json'}: 5 queries, 1 with no text and 2 with no labels; they are kept."
    ]
    assert len(corpus.split("train")) == 5


def test_labels_without_text_are_counted(lf: Callable[..., Path]) -> None:
    with pytest.warns(DataWarning, match=r"lbl\.json: 1 of 3 labels have no text"):
        Corpus.load(lf(lbl=[{"title": "a"}, {"title": ""}, {"title": "c"}]))


def test_nothing_odd_nothing_said(lf: Callable[..., Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Corpus.load(lf())


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"trn": [{"title": "", "target_ind": [0]}]}, r"trn\.json: none of its 1 queries has a text"),
        ({"trn": [{"title": "x", "target_ind": []}]}, r"trn\.json: none of its 1 queries has a label"),
        ({"trn": []}, r"trn\.json: no queries in it"),
        ({"lbl": []}, r"lbl\.json: the file is empty"),
        ({"lbl": [{"uid": "a"}]}, r"lbl\.json: none of its 1 labels has a text"),
        ({"lbl": None}, r"set: it holds trn\.json, tst\.json but no lbl\.json"),
        ({"trn": None, "tst": None, "val": TEST}, r"set: it holds val\.json, lbl\.json but no trn\.json"),
    ],
)
def test_what_nothing_can_be_made_of(lf: Callable[..., Path], parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Corpus.load(lf(**parts))


def test_one_file_of_the_directory_is_not_enough(lf: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r"trn\.json: one part of a data set in the LF layout; give its directory"):
        Corpus.load(lf() / "trn.json")


def test_titles_alone_where_the_settings_say_so(tmp_path):
    """As LF-AmazonTitles-131K is published: the files of LF-Amazon-131K, of which the titles are read."""
    query = {"uid": "a", "title": " Red kettle ", "content": "1.5 litres", "target_ind": [0]}
    label = {"uid": "x", "title": "Blue kettle", "content": "2 litres"}
    (tmp_path / "trn.json").write_text(json.dumps(query) + "\n")
    (tmp_path / "lbl.json").write_text(json.dumps(label) + "\n")
    titles = Corpus.load(tmp_path, settings=DataSettings(fields="title"))
    assert (list(titles.train.texts), list(titles.labels.texts)) == (["Red kettle"], ["Blue kettle"])
    whole = Corpus.load(tmp_path)
    assert (list(whole.train.texts), list(whole.labels.texts)) == (["Red kettle 1.5 litres"], ["Blue kettle 2 litres"])
