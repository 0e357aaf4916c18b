"""Whatever is wrong: exit code 2, one sentence that says where, no traceback, and nothing half-written."""

from __future__ import annotations

import gzip
import json
import shutil
import sys

import pytest
from e2e.shop import QUICK, write_shop

from primexmc.cli import main


def write_lf(place, train=None, tail=""):
    """A small directory in the LF layout whose third training line can be replaced."""
    place.mkdir()
    rows = [{"uid": str(n), "title": f"thing {n}", "content": "", "target_ind": [n % 3]} for n in range(6)]
    lines = [json.dumps(row) for row in rows]
    if train is not None:
        lines[2] = train
    (place / "trn.json").write_text("\n".join(lines) + tail, encoding="utf-8")
    (place / "tst.json").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    labels = [json.dumps({"uid": f"L{n}", "title": f"label {n}", "content": ""}) for n in range(3)]
    (place / "lbl.json").write_text("\n".join(labels), encoding="utf-8")
    return place


def missing(place):
    return place / "nowhere.csv", "no such file"


def truncated(place):
    write_shop(place / "x.csv", 300)
    (place / "x.csv.gz").write_bytes(gzip.compress((place / "x.csv").read_bytes())[:-2000])
    return place / "x.csv.gz", "breaks off"


def broken_line(place):
    return write_lf(place / "lf", train='{"uid": "2", "title": '), "trn.json, line 3: not valid JSON"


def label_out_of_range(place):
    row = {"uid": "2", "title": "thing", "content": "", "target_ind": [1, 3]}
    return write_lf(place / "lf", train=json.dumps(row)), "trn.json, line 3: label 3 is out of range"


def relevance_of_another_shape(place):
    row = {"uid": "2", "title": "thing", "content": "", "target_ind": [1, 2], "target_rel": [1.0]}
    return write_lf(place / "lf", train=json.dumps(row)), "trn.json, line 3: 2 labels but 1 relevance"


def binary_as_text(place):
    (place / "x.csv").write_bytes(b"text,labels\na,b\n\x80\xff\x00,b\n")
    return place / "x.csv", "x.csv, line 3: not UTF-8"


def without_labels(place):
    (place / "x.csv").write_text("text,labels\na,\nb,\n", encoding="utf-8")
    return place / "x.csv", "none of its 2 queries has a label"


def another_column(place):
    (place / "x.csv").write_text("text,label\na,b\n", encoding="utf-8")
    return place / "x.csv", "data.labels_column"


def unknown_kind(place):
    (place / "x.doc").write_text("hello", encoding="utf-8")
    return place / "x.doc", "not a kind of file"


def empty_directory(place):
    (place / "data").mkdir()
    return place / "data", "no data that can be read"


CASES = [missing, truncated, broken_line, label_out_of_range, relevance_of_another_shape, binary_as_text]
CASES += [without_labels, another_column, unknown_kind, empty_directory]


def the_error(capsys):
    """What was said, if it is one sentence."""
    screen = capsys.readouterr()
    last = screen.err.splitlines()[-1]
    assert last.startswith("primexmc: error: ") and screen.err.count("primexmc: error: ") == 1
    assert "Traceback" not in screen.err + screen.out
    return last


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bad_data(case, tmp_path, capsys):
    data, sentence = case(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["train", str(data), "--out", str(tmp_path / "deep" / "out"), *QUICK]) == 2
    assert sentence in the_error(capsys)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", "training.epoch=3"], 'unknown setting "training.epoch". Did you mean "training.epochs"?'),
        (["--set", "training.epochs=many"], "--set: training.epochs is a whole number, not 'many'"),
        (["--set", "training.epochs"], "expected section.key=value"),
        (["--preset", "statik-cpu"], 'no preset "statik-cpu". Did you mean "static-cpu"?'),
        (["--config", "nowhere.toml"], "nowhere.toml: no such settings file"),
        (["--set", "encoder.name=/nowhere"], "/nowhere"),
        (["--set", "training.device=tpu"], '"tpu" is no device'),
        (["--set", "prototypes.heads=7"], "prototypes.heads (7) must divide"),
        (["--resume", "--overwrite"], "not allowed with"),
        (["--overwrit"], 'no option "--overwrit". Did you mean "--overwrite"?'),
    ],
)
def test_bad_options_of_train(options, sentence, tmp_path, capsys):
    write_shop(tmp_path / "x.csv", 40)
    assert main(["train", str(tmp_path / "x.csv"), "--out", str(tmp_path / "out"), *options]) == 2
    assert sentence in the_error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_a_model_is_replaced_only_by_a_complete_one(model, shop, tmp_path, capsys):
    shutil.copytree(model, tmp_path / "m")
    before = {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()}
    again = ["train", str(shop / "train.csv"), "--out", str(tmp_path / "m"), "--set", "encoder.name=/nowhere"]
    assert main(again) == 2
    the_error(capsys)
    assert {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()} == before
    write_shop(tmp_path / "x.csv", 40)
    assert main(["train", str(tmp_path / "x.csv"), "--out", str(tmp_path / "m"), *QUICK]) == 0
    assert "is replaced when the new one is complete" in " ".join(capsys.readouterr().err.split())
    assert {path for path in (tmp_path / "m").rglob("*") if path.is_file()} == before.keys()
    assert (tmp_path / "m" / "network.safetensors").read_bytes() != before[tmp_path / "m" / "network.safetensors"]


@pytest.mark.parametrize("place", ["file", "file/below", "full"])
def test_an_out_that_cannot_be_written(place, shop, tmp_path, capsys):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert main(["train", str(shop / "train.csv"), "--out", str(tmp_path / place), *QUICK]) == 2
    assert str(tmp_path / place) in the_error(capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk(shop, tmp_path, capsys, monkeypatch):
    """The model's labels do not fit any more."""

    def fail(*_):
        raise OSError(28, "No space left on device", str(tmp_path / "out" / "labels.jsonl"))

    monkeypatch.setattr("primexmc.model.storage.write_labels", fail)
    assert main(["train", str(shop / "train.csv"), "--out", str(tmp_path / "out"), *QUICK]) == 2
    assert "labels.jsonl: No space left on device." in the_error(capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["evaluate", "predict", "serve"])
@pytest.mark.parametrize("what", ["nowhere", "train.csv", "directory"])
def test_what_is_no_model(verb, what, shop, tmp_path, capsys):
    (tmp_path / "directory").mkdir()
    path = shop / what if what == "train.csv" else tmp_path / what
    data = [str(shop / "held-out.csv")] if verb == "evaluate" else []
    assert main([verb, str(path), *data]) == 2
    assert str(path) in the_error(capsys)


def test_a_model_as_data(model, tmp_path, capsys):
    for arguments in (["train", str(model), "--out", str(tmp_path / "out")], ["evaluate", str(model), str(model)]):
        assert main(arguments) == 2
        assert "this is a model; expected data" in the_error(capsys)
    assert not list(tmp_path.iterdir())


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fewer_labels(path):
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("primexmc.json", cut),
        ("primexmc.json", lambda path: path.write_text("[1]", encoding="utf-8")),
        ("primexmc.json", lambda path: path.write_text('{"format_version": 99}', encoding="utf-8")),
        ("primexmc.json", lambda path: path.write_text('{"format_version": 1}', encoding="utf-8")),
        ("labels.jsonl", cut),
        ("labels.jsonl", fewer_labels),
        ("network.safetensors", cut),
        ("prototypes.safetensors", lambda path: path.unlink()),
        ("encoder/vectors.safetensors", cut),
        ("encoder/tokenizer.json", cut),
    ],
)
def test_a_damaged_model(name, damage, model, tmp_path, capsys):
    shutil.copytree(model, tmp_path / "m")
    damage(tmp_path / "m" / name)
    assert main(["predict", str(tmp_path / "m"), "-"]) == 2
    assert str(tmp_path / "m") in the_error(capsys)


def test_bad_questions_to_predict(model, shop, tmp_path, capsys, stdin, monkeypatch):
    (tmp_path / "binary.txt").write_bytes(b"fine\n\xff\xfe\n")
    for options, sentence in [
        ([str(tmp_path / "nowhere.txt")], "no such file"),
        ([str(tmp_path)], "a directory"),
        ([str(tmp_path / "binary.txt"), "--out", str(tmp_path / "out.tsv")], "binary.txt, line 2: not UTF-8"),
        (["--top", "0"], "--top is at least 1"),
        (["--batch-size", "0"], "--batch-size is at least 1"),
        (["--format", "xml"], "invalid choice"),
        (["--device", "cuda:9"], "cuda:9"),
        (["--out", str(tmp_path)], "a directory"),
    ]:
        stdin(b"hello\n")
        assert main(["predict", str(model), *options]) == 2
        assert sentence in the_error(capsys)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["predict", str(model), "--format", "npz"]) == 2
    assert "--out" in the_error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["binary.txt"]
    stdin(b"fine\nbro\x00ken\n")
    assert main(["predict", str(model)]) == 2
    assert "stdin, line 2: a zero byte" in the_error(capsys)


def test_a_split_that_is_not_there(model, shop, capsys):
    assert main(["evaluate", str(model), str(shop / "held-out.csv"), "--split", "val"]) == 2
    assert "no val split" in the_error(capsys)


def test_odd_but_legal_data_is_a_note_not_an_error(tmp_path, capsys):
    write_shop(tmp_path / "x.csv", 60)
    with (tmp_path / "x.csv").open("a", encoding="utf-8") as stream:
        stream.write("S1,no category here,5,\n")
    assert main(["train", str(tmp_path / "x.csv"), "--out", str(tmp_path / "m"), *QUICK, "--quiet"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("primexmc: note: ") and "61 queries, 1 with no labels" in said[0]
