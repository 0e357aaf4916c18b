"""`primexmc labels`: every change from files, and what is wrong with them in one sentence."""

from __future__ import annotations

import json

import pytest
from model.cases_of_labels import NUM_LABELS, made_model, state_of

from primexmc.cli import main
from primexmc.model.model import PrimeModel


@pytest.fixture
def model(tmp_path, monkeypatch):
    """In a directory of its own, with the working directory there."""
    monkeypatch.chdir(tmp_path)
    made_model().save(tmp_path / "m")
    return "m"


def write(name, content):
    with open(name, "w", encoding="utf-8") as stream:
        stream.write(content)
    return name


def say(capsys, *arguments):
    """The exit code, and what is printed."""
    code = main(["labels", *arguments])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def loaded(place="m"):
    return PrimeModel.load(place, "cpu")


def test_list(model, capsys):
    code, printed = say(capsys, model, "list")
    lines = printed.splitlines()
    made = made_model()
    assert code == 0 and len(lines) == NUM_LABELS
    assert lines[4].split("\t") == ["uid 4", made.labels.names[4], str(made.label_counts_L[4])]


def test_add_is_what_python_does(model, capsys):
    write("new.csv", "uid,name,text\na,Boats,red boat and a ship\nb,Trees,an old tree\n")
    write("queries.csv", "text,labels\na dog,a;Trees\na castle,a\n")
    code, printed = say(capsys, model, "add", "new.csv", "--queries", "queries.csv")
    assert (code, printed) == (0, "m: 2 labels added with 3 example queries; 32 labels.\n")
    wanted = made_model()
    queries = [["a dog", "a castle"], ["a dog"]]
    wanted.add_labels(["red boat and a ship", "an old tree"], ["a", "b"], ["Boats", "Trees"], queries)
    assert state_of(loaded()) == state_of(wanted)


def test_add_from_lines_elsewhere(model, capsys):
    write("new.txt", "old bridge\n\nriver, mountain\n")
    assert say(capsys, model, "add", "new.txt", "--out", "other") == (0, "other: 2 labels added; 32 labels.\n")
    assert list(loaded("other").labels.uids)[-2:] == ["old bridge", "river, mountain"]
    assert state_of(loaded()) == state_of(made_model()), "the model itself stays as it was"


def test_remove_rename_update(model, capsys):
    write("gone.txt", "uid 3\nuid 20\n")
    assert say(capsys, model, "remove", "gone.txt") == (0, "m: 2 labels removed; 28 labels.\n")
    write("names.jsonl", json.dumps({"uid": "uid 5", "name": "Bridge", "text": "a red bridge"}) + "\n")
    assert say(capsys, model, "rename", "names.jsonl") == (0, "m: 1 labels renamed; 28 labels.\n")
    write("more.csv", "text,labels\na red dog,uid 5;uid 6\n")
    assert say(capsys, model, "update", "more.csv") == (0, "m: 2 queries for 2 labels added; 28 labels.\n")
    wanted = made_model()
    wanted.remove_labels(["uid 3", "uid 20"])
    wanted.rename_labels({"uid 5": "a red bridge"}, {"uid 5": "Bridge"})
    wanted.update_labels({"uid 5": ["a red dog"], "uid 6": ["a red dog"]})
    assert state_of(loaded()) == state_of(wanted)


WRONG = {
    "no file": (["add"], None, "needs a FILE"),
    "no such file": (["add", "x.csv"], None, "x.csv: no such file"),
    "no such model": (["add", "x.txt"], "a\n", "no such model"),
    "known uid": (["add", "x.csv"], "uid,name\nuid 4,y\n", 'uid "uid 4" already'),
    "uid twice": (["add", "x.csv"], "uid,name\nu,y\nu,z\n", r'line 3: label uid "u" was already on line 2'),
    "no text": (["add", "x.csv"], "uid,name\nu,y\nv,\n", r"texts\[1\] is ''"),
    "nothing": (["add", "x.txt"], "\n", "x.txt: nothing in it"),
    "unknown": (["remove", "x.txt"], "uid 4\nuid 99\n", 'no label with the uid "uid 99"'),
    "line twice": (["remove", "x.txt"], "uid 4\n\nuid 4\n", 'x.txt, line 3: "uid 4" was already on line 1'),
    "rename unknown": (["rename", "x.csv"], "uid,name\nu,y\n", 'no label with the uid "u"'),
    "update unknown": (["update", "x.csv"], "text,labels\na dog,u\n", 'x.csv, line 2: there is no label .* "u"'),
    "queries elsewhere": (["remove", "x.txt", "--queries", "y.csv"], "uid 4\n", "--queries goes with add"),
    "list of a file": (["list", "x.txt"], "uid 4\n", "list takes no files"),
    "another change": (["drop", "x.txt"], "uid 4\n", "invalid choice: 'drop'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence_and_changes_nothing(model, capsys, case):
    import re

    arguments, content, message = WRONG[case]
    if content is not None:
        write(arguments[1], content)
    code, printed = say(capsys, "nowhere" if case == "no such model" else model, *arguments)
    assert code == 2 and printed.count("error") == 1 and "Traceback" not in printed and re.search(message, printed), (
        printed
    )
    assert state_of(loaded()) == state_of(made_model())


def test_an_unfinished_training_is_not_lost(model, capsys, tmp_path):
    (tmp_path / "m" / "training" / "checkpoint-000001").mkdir(parents=True)
    write("x.txt", "a dog\n")
    code, printed = say(capsys, model, "add", "x.txt")
    assert code == 2 and "unfinished training" in printed
    assert (tmp_path / "m" / "training" / "checkpoint-000001").exists()
