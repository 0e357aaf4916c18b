"""Somebody's own CSV: train with no settings, evaluate, predict, and be told about it."""

from __future__ import annotations

import collections
import csv
import json

import numpy as np
import pytest
from e2e.shop import CATEGORIES, QUICK, write_shop
from scipy.sparse import load_npz

from primexmc import PrimeModel
from primexmc.cli import main
from primexmc.data.cutter import Cutter


def printed(capsys):
    return capsys.readouterr().out


def held_out_rows(shop):
    with (shop / "held-out.csv").open(encoding="utf-8", newline="") as stream:
        return [(row["text"], set(row["labels"].split(";"))) for row in csv.DictReader(stream)]


def test_it_learns_far_more_than_what_is_popular(shop, model, tmp_path, capsys):
    assert main(["evaluate", str(model), str(shop / "held-out.csv"), "--json", str(tmp_path / "e.json")]) == 0
    result = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    rows = held_out_rows(shop)
    counts = collections.Counter(label for _, labels in rows for label in labels)
    popular = 100 * max(counts.values()) / len(rows)  # the best that one label for all could do
    assert result["P@1"] > popular + 60
    assert result["queries"] == 200 and result["labels"] == len(CATEGORIES)
    assert set(result["buckets"]) == {"head", "torso", "tail"}
    screen = printed(capsys)
    assert f"{result['P@1']:.1f}" in screen and "torso" in screen


def test_evaluate_and_predict_agree(shop, model, tmp_path, capsys):
    """P@1 counted from the printed predictions."""
    rows = held_out_rows(shop)
    (tmp_path / "texts.txt").write_text("\n".join(text for text, _ in rows), encoding="utf-8")
    assert main(["predict", str(model), str(tmp_path / "texts.txt"), "--top", "1"]) == 0
    answers = [json.loads(line) for line in printed(capsys).splitlines()]
    assert [answer["text"] for answer in answers] == [text for text, _ in rows]
    right = sum(answer["labels"][0]["label"] in labels for answer, (_, labels) in zip(answers, rows, strict=True))
    assert main(["evaluate", str(model), str(shop / "held-out.csv"), "--json", "-"]) == 0
    assert json.loads(printed(capsys))["P@1"] == pytest.approx(100 * right / len(rows))


def test_commas_stay_in_names(model):
    labels = PrimeModel.load(model, device="cpu").labels
    assert set(labels.names) == set(CATEGORIES)


def test_lines_stay_aligned_and_answers_best_first(model, stdin, capsys):
    stdin("red kettle whisk\n\n  \nusb plug d\u00e9j\u00e0 vu \u2028 x".encode())
    assert main(["predict", str(model), "--top", "3"]) == 0
    answers = [json.loads(line) for line in printed(capsys).split("\n")[:-1]]
    assert [answer["text"] for answer in answers] == [
        "red kettle whisk",
        "",
        "  ",
        "usb plug d\u00e9j\u00e0 vu \u2028 x",
    ]
    assert [len(answer["labels"]) for answer in answers] == [3, 0, 0, 3]
    for answer in answers:
        scores = [label["score"] for label in answer["labels"]]
        assert scores == sorted(scores, reverse=True)
    assert answers[0]["labels"][0]["label"] == "Home, kitchen & dining"
    assert set(answers[0]["labels"][0]) == {"label", "uid", "id", "score"}


@pytest.mark.parametrize("format", ["jsonl", "tsv", "npz", "parquet"])
def test_a_pipe_takes_every_format(format, model, tmp_path, stdin, capfdbinary):
    for out in ([], ["--out", str(tmp_path / "x")]):
        stdin(b"red kettle\n\nusb plug\n")
        assert main(["predict", str(model), "--top", "2", "--format", format, *out]) == 0
    piped = capfdbinary.readouterr().out
    if format == "npz":  # a zip, with the time of its making
        (tmp_path / "piped").write_bytes(piped)
        assert (load_npz(tmp_path / "piped") != load_npz(tmp_path / "x")).nnz == 0
    else:
        assert piped == (tmp_path / "x").read_bytes()


def test_the_formats_say_the_same(model, tmp_path, stdin, capsys):
    from pyarrow import parquet

    texts = b"red kettle\n\nusb plug\n"
    for name in ("x.jsonl", "x.tsv", "x.npz", "x.parquet"):
        stdin(texts)
        assert main(["predict", str(model), "--top", "2", "--out", str(tmp_path / name), "--batch-size", "2"]) == 0
    assert printed(capsys) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.jsonl", "x.npz", "x.parquet", "x.tsv"]
    lines = (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [[(one["id"], one["score"]) for one in json.loads(line)["labels"]] for line in lines]
    assert [len(row) for row in expected] == [2, 0, 2]
    with (tmp_path / "x.tsv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream, delimiter="\t"))
    assert [(row["query"], row["rank"]) for row in table] == [("1", "1"), ("1", "2"), ("3", "1"), ("3", "2")]
    assert [float(row["score"]) for row in table] == [score for row in expected for _, score in row]
    matrix = load_npz(tmp_path / "x.npz")
    assert matrix.shape == (3, len(CATEGORIES)) and np.diff(matrix.indptr).tolist() == [2, 0, 2]
    rows = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["query"] for row in rows] == [1, 2, 3] and [row["text"] for row in rows] == [
        "red kettle",
        "",
        "usb plug",
    ]
    for number, row in enumerate(expected):
        assert [(one["id"], round(one["score"], 6)) for one in rows[number]["labels"]] == row
        for label, score in row:
            assert matrix[number, label] == pytest.approx(score, abs=1e-6)


def test_info_tells_about_model_and_data(shop, model, capsys):
    assert main(["info", str(model)]) == 0
    screen = printed(capsys)
    assert "12 labels, 256 dimensions" in screen and "encoder static" in screen and "training.epochs = " in screen
    assert main(["info", str(model), "--json"]) == 0
    facts = json.loads(printed(capsys))
    assert facts["validation"]["P@1"] > 60 and facts["settings"]["training.batch_size"] == 32
    assert facts["bytes"] == sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    assert main(["info", str(shop / "train.csv")]) == 0
    assert "500 queries" in printed(capsys)


def test_a_second_run_tokenises_nothing(tmp_path, monkeypatch):
    write_shop(tmp_path / "other.csv", 60, seed=9)
    arguments = ["train", str(tmp_path / "other.csv"), *QUICK, "--quiet", "--out"]
    tokenised = []
    encode = Cutter.encode
    monkeypatch.setattr(Cutter, "encode", lambda self, texts: tokenised.append(len(texts)) or encode(self, texts))
    assert main([*arguments, str(tmp_path / "one")]) == 0
    assert sum(tokenised) >= 60
    tokenised.clear()
    assert main([*arguments, str(tmp_path / "two")]) == 0
    assert sum(tokenised) <= 3 * 3  # the three held-out queries: for prototypes, voices and probabilities


def test_other_columns_and_a_file_of_settings(tmp_path, capsys):
    write_shop(tmp_path / "x.csv", 60)
    (tmp_path / "y.csv").write_text(
        (tmp_path / "x.csv").read_text(encoding="utf-8").replace("text,price,labels", "title,price,kinds"), "utf-8"
    )
    (tmp_path / "my.toml").write_text('[data]\nlabels_column = "kinds"\n[training]\nepochs = 7\n', encoding="utf-8")
    arguments = ["train", str(tmp_path / "y.csv"), "--out", str(tmp_path / "m"), "--config", str(tmp_path / "my.toml")]
    assert main([*arguments, "--set", "data.text_column=title", *QUICK]) == 0
    screen = capsys.readouterr()
    assert "epoch 2/2" in screen.err, "--set wins over the file"
    assert "derived from data and hardware" in screen.err and "primexmc predict" in screen.out
    assert PrimeModel.load(tmp_path / "m", device="cpu").settings.data.labels_column == "kinds"
