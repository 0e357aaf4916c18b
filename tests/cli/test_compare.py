"""`primexmc compare` as it is typed."""

from __future__ import annotations

import json

import pytest

from primexmc.cli import main

TEXTS = ["a red boat", "a blue boat", "a red house", "a blue house on a hill"]


@pytest.fixture
def data(tmp_path):
    directory = tmp_path / "things"
    directory.mkdir()
    rows = [f"{text},{'boat' if 'boat' in text else 'house'}" for text in TEXTS]
    for name, part in (("train", rows * 3), ("test", rows)):
        (directory / f"{name}.csv").write_text("\n".join(["text,labels", *part]) + "\n", encoding="utf-8")
    return directory


def test_a_table_and_a_file(data, tmp_path, capsys):
    words = ["compare", str(data), "--methods", "popularity, tfidf-neighbours", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    rows = json.loads((tmp_path / "out" / "field.json").read_text(encoding="utf-8"))
    assert [(row["data"], row["method"]) for row in rows] == [("things", "popularity"), ("things", "tfidf-neighbours")]
    assert rows[0]["P@1"] == 50 and rows[1]["P@1"] == 100, "half of the things are boats; the same texts were trained"
    printed = capsys.readouterr().out
    assert "P@1" in printed and "field.json" in printed
    assert main(words) == 0 and "already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--methods", "popularty"], 'Did you mean "popularity"'),
        (["--methods", ","], "at least one method"),
        (["--methods", "prime", "--modes", "memori"], 'Did you mean "memory"'),
        ([], "--methods"),
        (["--recipe", "margins,pool", "--methods", "prime"], "choose from one recipe"),
        (["--recipe", "margins,pol"], 'Did you mean "pool"'),
        (["--methods", "prime", "--jobs", "0"], "one job"),
        (["more-data", "--methods", "prime", "--costs"], "take one DATA, not 2"),
    ],
)
def test_one_sentence_for_what_is_wrong(data, words, sentence, capsys):
    assert main(["compare", str(data), *words]) == 2
    assert sentence in capsys.readouterr().err
