from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.sparse import csr_matrix, save_npz

from primexmc.data.corpus import Corpus, DataWarning
from primexmc.errors import UserError

Write = Callable[[str, "str | bytes"], Path]
LABELS = "Red\nGreen, dark\nBlue\n"


@pytest.mark.parametrize(
    "names",
    [
        ("trn.raw.txt", "tst.raw.txt", "lbl.raw.txt"),
        ("raw/trn_X.txt", "raw/tst_X.txt", "raw/Y.txt"),
        ("trn_X.txt.gz", "tst_X.txt.gz", "Y.txt.gz"),
        ("train_raw_texts.txt", "test_raw_texts.txt", "Yf.txt"),
    ],
)
def test_texts_under_the_names_in_use(write: Write, names: tuple[str, str, str]) -> None:
    write("d/trn_X_Y.txt", "2 3\n2:0.5 0:1.0\n1:1\n")
    write("d/tst_X_Y.txt", "1 3\n0:1.0\n")
    write("d/filter_labels_test.txt", "0 2\n")
    for name, content in zip(names, ("one\u2028\r\ntwo\n", "three", LABELS), strict=True):
        write(f"d/{name}", content)
    corpus = Corpus.load(write("d/readme", "").parent)
    train, test = corpus.split("train"), corpus.split("test")
    assert list(train.texts) == ["one", "two"]
    assert train.positives.toarray().tolist() == [[1, 0, 0.5], [0, 1, 0]]
    assert list(test.texts) == ["three"]
    assert test.filtered is not None
    assert test.filtered.toarray().tolist() == [[0, 0, 1]]
    assert list(corpus.labels.names) == list(corpus.labels.texts) == ["Red", "Green, dark", "Blue"]
    assert list(corpus.labels.uids) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["{}_X_Y.npz", "Y.{}.npz"])
def test_scipy_matrices(write: Write, name: str) -> None:
    directory = write("d/lbl.raw.txt", LABELS).parent
    save_npz(directory / name.format("trn"), csr_matrix([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]]))
    write("d/trn.raw.txt", "one\ntwo\n")
    corpus = Corpus.load(directory)
    assert corpus.split("train").positives.toarray().tolist() == [[0, 2, 1], [1, 0, 0]]
    assert corpus.test is None


def test_rows_without_labels_are_empty_lines(write: Write) -> None:
    write("d/trn_X_Y.txt", "3 3\n\n0:1\n\n")
    write("d/trn.raw.txt", "one\n\nthree\n")
    with pytest.warns(DataWarning, match=r"trn_X_Y\.txt: 3 queries, 1 with no text and 2 with no labels"):
        corpus = Corpus.load(write("d/lbl.raw.txt", LABELS).parent)
    assert corpus.split("train").positives.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    write("d/trn_X_Y.txt", "3 3\n\n0:1\n2:1\n\n\n")  # and the last ones mean nothing
    with pytest.warns(DataWarning, match="1 with no labels"):
        corpus = Corpus.load(write("d/lbl.raw.txt", LABELS).parent)
    assert corpus.split("train").positives.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_uids_before_arrows(write: Write) -> None:
    write("d/trn_X_Y.txt", "2 2\n0:1\n1:1\n")
    write("d/trn.raw.txt", "B01->one -> two\nB02->three\n")
    corpus = Corpus.load(write("d/lbl.raw.txt", "A1->Red\nA2->Blue\n").parent)
    assert list(corpus.split("train").uids) == ["B01", "B02"]
    assert list(corpus.split("train").texts) == ["one -> two", "three"]
    assert list(corpus.labels.uids) == ["A1", "A2"]
    assert list(corpus.labels.names) == ["Red", "Blue"]


def test_arrows_that_are_text(write: Write) -> None:
    write("d/trn_X_Y.txt", "2 2\n0:1\n1:1\n")
    write("d/trn.raw.txt", "A->B\nplain\n")
    corpus = Corpus.load(write("d/lbl.raw.txt", "Red\nBlue\n").parent)
    assert list(corpus.split("train").texts) == ["A->B", "plain"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"trn_X_Y.txt": "2 3\n0:1\n3:1\n"}, r"trn_X_Y\.txt, line 3: label 3 is out of range"),
        ({"trn_X_Y.txt": "2 3\n0:1\n0:1 1\n"}, r'trn_X_Y\.txt, line 3: expected "label:relevance" pairs'),
        ({"trn_X_Y.txt": "2 3\n0:1\nx:1\n"}, r"trn_X_Y\.txt, line 3: expected"),
        ({"trn_X_Y.txt": "2 3\n0:1\n0:nan\n"}, r"trn_X_Y\.txt, line 3: relevance nan"),
        ({"trn_X_Y.txt": "0:1\n0:1\n"}, r'trn_X_Y\.txt, line 1: expected "queries labels"'),
        ({"trn_X_Y.txt": ""}, r"trn_X_Y\.txt, line 1: expected"),
        ({"trn_X_Y.txt": "3 3\n0:1\n0:1\n"}, r"trn_X_Y\.txt: 2 rows, but its first line says 3"),
        ({"trn_X_Y.txt": "2 4\n0:1\n0:1\n"}, r"trn_X_Y\.txt: 4 labels, but there are 3 lines of label text"),
        ({"trn.raw.txt": "one\n"}, r"trn\.raw\.txt: 1 texts, but trn_X_Y\.txt has 2 queries"),
        (
            {"trn.raw.txt": None},
            r"the texts to trn_X_Y\.txt are missing; expected one of trn\.raw\.txt, raw/trn_X\.txt",
        ),
        ({"lbl.raw.txt": None}, r"the label texts are missing; expected one of lbl\.raw\.txt"),
        ({"lbl.raw.txt": ""}, r"lbl\.raw\.txt: the file is empty"),
        ({"lbl.raw.txt": "a->x\nb->y\na->z\n"}, r'lbl\.raw\.txt, line 3: label uid "a" was already on line 1'),
        ({"trn_X_Y.txt": None, "trn_X_Y.npz": "no zip"}, r"trn_X_Y\.npz: not a sparse matrix"),
    ],
)
def test_broken(write: Write, changed: dict[str, str | None], sentence: str) -> None:
    files: dict[str, str | None] = {
        "trn_X_Y.txt": "2 3\n0:1\n1:1\n",
        "trn.raw.txt": "one\ntwo\n",
        "lbl.raw.txt": LABELS,
    }
    for name, content in {**files, **changed}.items():
        if content is not None:
            directory = write(f"d/{name}", content).parent
    with pytest.raises(UserError, match=sentence):
        Corpus.load(directory)


def test_a_matrix_of_another_width(write: Write) -> None:
    directory = write("d/lbl.raw.txt", LABELS).parent
    save_npz(directory / "trn_X_Y.npz", csr_matrix([[1.0, 2.0]]))
    write("d/trn.raw.txt", "one\n")
    with pytest.raises(UserError, match=r"trn_X_Y\.npz: 2 labels, but there are 3 lines of label text"):
        Corpus.load(directory)
