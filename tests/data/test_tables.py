from __future__ import annotations

import bz2
import csv
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primexmc.config import DataSettings
from primexmc.data.corpus import Corpus, DataWarning, Split
from primexmc.errors import UserError

Write = Callable[[str, "str | bytes"], Path]


def labels_of(corpus: Corpus, part: str = "train") -> list[set[str]]:
    """The uids of each query's labels."""
    split: Split = corpus.split(part)
    return [{corpus.labels.uids[label] for label in row.indices} for row in split.positives]


def test_a_csv_file_is_train_or_test(write: Write) -> None:
    path = write("mine.csv", "text,labels\nfirst text,red|blue\nsecond text,blue\n")
    corpus = Corpus.load(path)
    assert corpus.name == "mine"
    assert list(corpus.labels.uids) == list(corpus.labels.names) == list(corpus.labels.texts) == ["red", "blue"]
    assert list(corpus.split("train").texts) == ["first text", "second text"]
    assert list(corpus.split("train").uids) == ["0", "1"]
    assert corpus.split("train").positives.toarray().tolist() == [[1, 1], [0, 1]]
    assert corpus.test is None
    assert labels_of(Corpus.load(path, single_file_as="test"), "test") == [{"red", "blue"}, {"blue"}]


def test_more_columns_in_any_order(write: Write) -> None:
    path = write("mine.csv", "price,labels,uid,text\n3,red,a7,first\n4,blue,a8,second\n")
    corpus = Corpus.load(path)
    assert list(corpus.split("train").uids) == ["a7", "a8"]
    assert list(corpus.split("train").texts) == ["first", "second"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_cells(write: Write, name: str, end: str) -> None:
    content = end.join(["\ufefftext,labels", '"one, ""two""', 'three","red, dark|blue"', "\u2028x,blue", ""])
    corpus = Corpus.load(write(name, content))
    assert list(corpus.split("train").texts) == [f'one, "two"{end}three', "x"]
    assert labels_of(corpus) == [{"red, dark", "blue"}, {"blue"}]


def test_tabs_and_semicolons_between_cells(write: Write) -> None:
    assert labels_of(Corpus.load(write("a.tsv", "text\tlabels\nx, y\tred;blue\nz\tred\n"))) == [
        {"red", "blue"},
        {"red"},
    ]
    assert labels_of(Corpus.load(write("a.csv", "text;labels\nx, y;red|blue\nz;red\n"))) == [{"red", "blue"}, {"red"}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("text,labels\na,b\nc,d,e\n", r"line 3: 3 cells, but the header has 2"),
        ('text,labels\n"a\nb",c\nd\n', r"line 4: 1 cells, but the header has 2"),
        ('text,labels\na,b\n"c,d\ne,f\n', r"line 3: a quotation mark opens here and is never closed"),
        ("", r"a\.csv: the file is empty"),
        ("text,labels\n", r"a\.csv: no queries in it"),
        ("text,labels\n,red\n,blue\n", r"none of its 2 queries has a text"),
        ("text,labels\na,\nb,|\n", r"none of its 2 queries has a label"),
        (
            "txt,labels\na,b\n",
            r'no column "text"; its columns are txt, labels\. Did you mean "txt"\?.*data\.text_column=',
        ),
        ("text,tags\na,b\n", r'no column "labels"; its columns are text, tags\..*--set data\.labels_column=NAME'),
        (b"text,labels\na,b\nf\xfcr,c\n", r"line 3: not UTF-8"),
        ("text,labels\ra,b\rc,d\r", r"line 1: broken row"),
        (b"PK\x03\x04\x00\x00", r"line 1: a zero byte"),
    ],
)
def test_broken_csv(write: Write, content: str | bytes, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Corpus.load(write("a.csv", content))


@pytest.mark.parametrize(
    "content",
    [
        "text;labels\nx, y;red|blue\nz;red\n",
        "text\tlabels\nx, y\tred|blue\nz\tred\n",
        "sep=;\ntext;labels\nx, y;red|blue\nz;red\n",
        'text;labels;"price, EUR"\nx, y;red|blue;1\nz;red;2\n',
        "\ufeffsep=\t\r\ntext\tlabels\r\nx, y\tred|blue\r\nz\tred\r\n",
        'SEP=,\ntext,labels\n"x, y",red|blue\nz,red\n',
    ],
)
def test_what_spreadsheets_call_csv(write: Write, content: str) -> None:
    corpus = Corpus.load(write("a.csv", content))
    assert list(corpus.split("train").texts) == ["x, y", "z"]
    assert labels_of(corpus) == [{"red", "blue"}, {"red"}]


@pytest.mark.parametrize("name", ["text", "labels"])
def test_a_column_that_is_there_twice(write: Write, name: str) -> None:
    with pytest.raises(UserError, match=f'a.csv: several columns are called "{name}"'):
        Corpus.load(write("a.csv", f"text,labels,{name}\na,b,c\n"))


def test_other_column_names_by_setting(write: Write) -> None:
    path = write("a.csv", "description,tags,text\nx,red|blue,no\n")
    corpus = Corpus.load(path, settings=DataSettings(text_column="description", labels_column="tags"))
    assert list(corpus.split("train").texts) == ["x"]
    assert labels_of(corpus) == [{"red", "blue"}]


def test_rows_without_text_or_labels_are_kept_and_said_once(write: Write) -> None:
    path = write("a.csv", "text,labels\nx,red\n,red\ny,\nz,\n")
    with pytest.warns(DataWarning, match=r"a\.csv: 4 queries, 1 with no text and 2 with no labels") as caught:
        corpus = Corpus.load(path)
    assert len(caught) == 1
    assert labels_of(corpus) == [{"red"}, {"red"}, set(), set()]


# --- separators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a|b", "c"], [{"a", "b"}, {"c"}]),
        (["a; b ;", "c"], [{"a", "b"}, {"c"}]),
        (["a|b; c", "d|e", "f"], [{"a", "b; c"}, {"d", "e"}, {"f"}]),
        (["a b", "c/d"], [{"a b"}, {"c/d"}]),
    ],
)
def test_the_separator_is_found_out(write: Write, cells: list[str], expected: list[set[str]]) -> None:
    rows = "".join(f"x\t{cell}\n" for cell in cells)
    assert labels_of(Corpus.load(write("a.tsv", f"text\tlabels\n{rows}"))) == expected


@pytest.mark.parametrize("separator", ["|", ";", " / ", ","])
def test_a_separator_that_is_given(write: Write, separator: str) -> None:
    path = write("a.tsv", f"text\tlabels\nx\ta{separator}b\n")
    assert labels_of(Corpus.load(path, settings=DataSettings(separator=separator))) == [{"a", "b"}]


def test_a_comma_never_separates(write: Write) -> None:
    path = write("a.tsv", "text\tlabels\nx\tVienna, Austria\n")
    assert labels_of(Corpus.load(path)) == [{"Vienna, Austria"}]


def test_the_test_file_is_read_as_train_is(write: Write) -> None:
    """A lone `;` in a name of the test file separates nothing when train says so."""
    write("d/train.csv", "text,labels\nx,fire; water|earth\ny,fire; water\n")
    write("d/test.csv", "text,labels\nz,fire; water\n")
    assert labels_of(Corpus.load(write("d/notes.md", "").parent), "test") == [{"fire; water"}]


def test_known_labels_decide_the_separator(write: Write) -> None:
    write("d/labels.csv", "uid,name\n1,a;b\n2,c\n3,d|e\n")
    path = write("d/train.csv", "text,labels\nx,a;b\ny,c|a;b\nz,c\n")
    assert labels_of(Corpus.load(path.parent)) == [{"1"}, {"2", "1"}, {"2"}]


# --- directories and labels -------------------------------------------------------------------------------------------


def test_a_directory_of_different_tables(write: Write) -> None:
    write("d/train.jsonl.gz", json.dumps({"text": "x", "labels": ["r", "b"]}))
    write("d/validation.tsv", "text\tlabels\nv\tr\n")
    write("d/test.csv", "text,labels\nz,b\n")
    path = write("d/labels.csv", "uid,name,content\nr,Red,warm\nb,Blue,\ng,Green,never used\n")
    corpus = Corpus.load(path.parent)
    assert list(corpus.labels.uids) == ["r", "b", "g"]
    assert list(corpus.labels.names) == ["Red", "Blue", "Green"]
    assert list(corpus.labels.texts) == ["Red warm", "Blue", "Green never used"]
    assert [labels_of(corpus, part) for part in ("train", "val", "test")] == [[{"r", "b"}], [{"r"}], [{"b"}]]


def test_uids_come_before_names_and_equal_names_are_normal(write: Write) -> None:
    write("d/labels.csv", "uid,title,text\n1,2,own text\n2,one,\n3,same,\n4,same,\n")
    path = write("d/train.csv", "text,labels\nx,2|3\ny,one\nz,4\n")
    corpus = Corpus.load(path.parent)
    assert labels_of(corpus) == [{"2", "3"}, {"2"}, {"4"}]
    assert corpus.labels.texts[0] == "own text"
    write("d/train.csv", "text,labels\nx,2\ny,same\n")
    with pytest.raises(UserError, match=r'train\.csv, line 3: several labels are called "same"; write the uid'):
        Corpus.load(path.parent)


def test_labels_by_name_alone(write: Write) -> None:
    write("d/labels.csv", "name\nred\nblue\n")
    path = write("d/train.csv", "text,labels\nx,blue\n")
    corpus = Corpus.load(path.parent)
    assert list(corpus.labels.uids) == ["red", "blue"]
    assert labels_of(corpus) == [{"blue"}]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ("uid,name\na,x\nb,y\na,z\n", r'labels\.csv, line 4: label uid "a" was already on line 2'),
        ("name\nx\nx\n", r'labels\.csv, line 3: label uid "x" was already on line 2'),
        ("uid,name\na,x\n,\n", r"labels\.csv, line 3: a label with neither uid nor name"),
        ("what\nx\n", r"labels\.csv: no column uid, name or title; its columns are what"),
        ("uid,name\n", r"labels\.csv: no labels in it"),
        ("uid,name\nblues,x\n", r'train\.csv, line 2: there is no label with the uid or name "blue".*mean "blues"\?'),
    ],
)
def test_broken_labels(write: Write, labels: str, sentence: str) -> None:
    write("d/train.csv", "text,labels\nt,blue\n")
    with pytest.raises(UserError, match=sentence):
        Corpus.load(write("d/labels.csv", labels).parent)


def test_labels_that_only_test_has_come_last_and_are_said(write: Write) -> None:
    write("d/train.csv", "text,labels\nx,red\n")
    path = write("d/test.csv", "text,labels\nx,new|red\n")
    with pytest.warns(DataWarning, match="1 labels of val and test are not in"):
        corpus = Corpus.load(path.parent)
    assert list(corpus.labels.uids) == ["red", "new"]
    assert corpus.split("train").positives.shape == (1, 2)
    assert labels_of(corpus, "test") == [{"new", "red"}]


def test_two_files_for_one_split(write: Write) -> None:
    write("d/train.csv", "")
    with pytest.raises(UserError, match=r"both train\.csv and train\.jsonl could be train"):
        Corpus.load(write("d/train.jsonl", "").parent)


def test_only_labels(write: Write) -> None:
    with pytest.raises(UserError, match=r"it holds labels\.csv but no train and no test file"):
        Corpus.load(write("d/labels.csv", "uid,name\na,b\n").parent)


# --- JSON lines -------------------------------------------------------------------------------------------------------


def test_json_lines_of_all_kinds(write: Write) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "a", "labels": ["x|y", "z"]},
        {"text": "b", "labels": "u|v", "uid": 5},
        {"text": "c", "labels": [12, 13.0]},
        {"text": "d", "labels": 12},
        {"text": "e", "labels": None},
    ]
    path = write("a.jsonl.bz2", bz2.compress("\n".join(map(json.dumps, rows)).encode()))
    with pytest.warns(DataWarning, match="1 with no labels"):
        corpus = Corpus.load(path)
    assert labels_of(corpus) == [{"x|y", "z"}, {"u", "v"}, {"12", "13"}, {"12"}, set()]
    assert corpus.split("train").uids[1] == "5"


def test_json_lines_with_title_and_content(write: Write) -> None:
    path = write("a.jsonl", json.dumps({"title": "T", "content": "C", "labels": ["x"]}))
    assert list(Corpus.load(path).split("train").texts) == ["T C"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"text": "x", "labels": {"a": 1}}, r"a\.jsonl, line 2: the labels cell holds a dict"),
        ({"text": ["x"], "labels": ["a"]}, r"a\.jsonl, line 2: the text is a list"),
    ],
)
def test_broken_json_rows(write: Write, row: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Corpus.load(write("a.jsonl", '{"text": "x", "labels": "y"}\n' + json.dumps(row)))


def test_an_lf_file_alone_is_recognised(write: Write) -> None:
    with pytest.raises(UserError, match=r"a\.jsonl: a file in the LF layout; give the directory"):
        Corpus.load(write("a.jsonl", json.dumps({"title": "x", "target_ind": [0]})))


# --- Parquet and data sets --------------------------------------------------------------------------------------------


def test_parquet_with_lists_or_text(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "d").mkdir()
    table = {"text": ["x", "y"], "labels": [["a, b", "c"], ["c"]], "price": [1.0, None]}
    parquet.write_table(pyarrow.table(table), tmp_path / "d" / "train.parquet")
    parquet.write_table(pyarrow.table({"text": ["z"], "labels": ["a, b|c"]}), tmp_path / "d" / "test.parquet")
    corpus = Corpus.load(tmp_path / "d")
    assert labels_of(corpus) == [{"a, b", "c"}, {"c"}]
    assert labels_of(corpus, "test") == [{"a, b", "c"}]
    whole = Corpus.load(tmp_path / "d" / "test.parquet", single_file_as="test")
    assert labels_of(whole, "test") == [{"a, b", "c"}]


def test_other_columns_of_a_parquet_file_are_not_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    columns = {"body": ["x"], "tags": ["a|b"], "image": [b"\x00" * 100], "text": ["no"]}
    parquet.write_table(pyarrow.table(columns), path)
    corpus = Corpus.load(path, settings=DataSettings(text_column="body", labels_column="tags"))
    assert list(corpus.split("train").texts) == ["x"]
    assert labels_of(corpus) == [{"a", "b"}]
    with pytest.raises(UserError, match=r'a\.parquet: no column "labels"; its columns are body, tags, image, text'):
        Corpus.load(path)


def test_a_parquet_file_that_is_none(write: Write) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(UserError, match=r"a\.parquet: not a Parquet file"):
        Corpus.load(write("a.parquet", "text,labels\nx,y\n"))


class Feature:
    def __init__(self, names: list[str] | None = None, feature: Feature | None = None) -> None:
        if names is not None:
            self.names = names
        if feature is not None:
            self.feature = feature


class DuckDataset:
    """The little of a Hugging Face data set that is asked for."""

    def __init__(self, rows: list[dict[str, Any]], features: dict[str, Feature] | None = None) -> None:
        self.rows, self.column_names, self.features = rows, list(rows[0]), features

    def __iter__(self) -> Any:
        return iter(self.rows)


def test_data_sets_by_duck_type() -> None:
    train = DuckDataset([{"text": "x", "labels": ["a", "b"]}, {"text": "y", "labels": ["b"]}])
    test = DuckDataset([{"text": "z", "labels": ["a"]}])
    assert labels_of(Corpus.load(train)) == [{"a", "b"}, {"b"}]
    arrays = DuckDataset([{"text": "x", "labels": np.array([3, 4])}, {"text": "y", "labels": np.int64(4)}])
    assert labels_of(Corpus.load(arrays)) == [{"3", "4"}, {"4"}]
    assert labels_of(Corpus.load(test, single_file_as="test"), "test") == [{"a"}]
    corpus = Corpus.load({"train": train, "test": test, "extra": test})
    assert labels_of(corpus, "test") == [{"a"}]
    assert corpus.val is None


def test_class_numbers_get_their_names() -> None:
    names = Feature(names=["a", "b"])
    several = DuckDataset([{"text": "x", "labels": [1, 0]}], {"labels": Feature(feature=names)})
    rows = [{"text": "x", "labels": np.int64(1)}, {"text": "y", "labels": None}, {"text": "z", "labels": -1}]
    single = DuckDataset(rows, {"labels": names})
    assert labels_of(Corpus.load(several)) == [{"a", "b"}]
    with pytest.warns(DataWarning, match="the data set: 3 queries, 2 with no labels"):
        assert labels_of(Corpus.load(single)) == [{"b"}, set(), set()]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (7, "a int is no data"),
        ({"unsupervised": DuckDataset([{"text": "x", "labels": []}])}, "has the splits unsupervised; expected train"),
        (DuckDataset([{"txt": "x", "labels": []}]), 'the data set: no column "text"'),
        (DuckDataset([{"text": "x", "labels": ["a"]}, {"text": {}, "labels": ["a"]}]), "the data set, row 1: the text"),
    ],
)
def test_what_is_no_data_set(source: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Corpus.load(source)


# --- whatever csv.writer writes ---------------------------------------------------------------------------------------

CELL = st.text(alphabet=st.sampled_from(list("ab,;\t|\"'\n é\u2028")), max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    rows = [("x", "y"), *rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "labels"])
        writer.writerows(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corpus = Corpus.load(path, settings=DataSettings(separator="|"))
    assert list(corpus.split("train").texts) == [text.strip() for text, _ in rows]
    assert labels_of(corpus) == [{piece.strip() for piece in cell.split("|")} - {""} for _, cell in rows]
