"""`primexmc predict` as people use it: tables in, lists of labels, and a kill in the middle."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import time

import pytest
from e2e.shop import CATEGORIES

from primexmc.cli import main


def printed(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]


def wait_for(condition, process, timeout_s=120.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.002)


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_killed_twice_it_is_complete_and_nothing_is_there_twice(model, tmp_path, command, name):
    texts = [f"red {word} number {number}" for number in range(600) for word in ("kettle", "hose", "puzzle", "guitar")]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    arguments = ["predict", model, tmp_path / "texts.txt", "--batch-size", "8", "--resume", "--out"]
    note, rows = tmp_path / f"{name}.part.json", [0]
    for _ in range(2):
        process = command(*arguments, tmp_path / name)
        wait_for(lambda: note.exists() and json.loads(note.read_text())["rows"] > rows[-1], process)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
        rows.append(json.loads(note.read_text())["rows"])
        assert not (tmp_path / name).exists()
    assert 0 < rows[1] < rows[2] < len(texts)
    process = command(*arguments, tmp_path / name)
    out, said = process.communicate(timeout=120)
    assert (process.returncode, out, said) == (0, b"", b"")
    assert main([str(word) for word in arguments] + [str(tmp_path / f"whole-{name}")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", name, f"whole-{name}"}
    assert rows_of(tmp_path / name) == rows_of(tmp_path / f"whole-{name}")
    assert [row["text"] for row in rows_of(tmp_path / name)] == texts


def rows_of(path):
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_in_another_mode(shop, model, tmp_path, capsys):
    (tmp_path / "x.txt").write_text("a kettle for the kitchen\n")
    blend = json.loads((model / "primexmc.json").read_text())["blend"]
    copy = shutil.copytree(model, tmp_path / "model")
    blend["weights"]["all"] |= {"memory": 0.3, "lexical": 0.2}
    description = json.loads((copy / "primexmc.json").read_text()) | {"blend": blend}
    (copy / "primexmc.json").write_text(json.dumps(description))
    best = {}
    for mode in ("auto", "theta", "all"):
        assert main(["predict", str(copy), "--mode", mode, str(tmp_path / "x.txt")]) == 0
        best[mode] = printed(capsys)[0]["labels"][0]["score"]
    assert best["all"] > best["theta"] + 0.1 and best["auto"] == best[blend["best"]]
    assert main(["predict", str(copy), "--mode", "W", str(tmp_path / "x.txt")]) == 2
    assert "no classifier" in capsys.readouterr().err


def test_a_table_in_and_its_uid_carried_through(shop, model, capsys):
    assert main(["predict", str(model), "--uid-column", "sku", "--top", "1", str(shop / "held-out.csv")]) == 0
    rows = printed(capsys)
    assert [row["sku"] for row in rows] == [f"S{number:05}" for number in range(200)]
    assert list(rows[0]) == ["sku", "text", "labels"] and len(rows[0]["labels"]) == 1


def test_only_labels_that_are_wanted(model, tmp_path, stdin, capsys):
    (tmp_path / "some.txt").write_text("Garden, patio\n\nToys, games\nPets, animals\n", encoding="utf-8")
    (tmp_path / "one.txt").write_text("Toys, games\n", encoding="utf-8")
    (tmp_path / "pairs.txt").write_text("2\tPets, animals\n", encoding="utf-8")

    def names(*options):
        stdin(b"red kettle\nred kettle\n")
        assert main(["predict", str(model), "--top", "12", *options]) == 0
        return [[label["label"] for label in row["labels"]] for row in printed(capsys)]

    some, one, pairs = (str(tmp_path / name) for name in ("some.txt", "one.txt", "pairs.txt"))
    assert set(names("--allow", some)[0]) == {"Garden, patio", "Toys, games", "Pets, animals"}
    assert set(names("--allow", some, "--block", one)[0]) == {"Garden, patio", "Pets, animals"}
    assert set(names("--block", one)[0]) == set(CATEGORIES) - {"Toys, games"}
    first, second = names("--filter", pairs)
    assert "Pets, animals" in first and "Pets, animals" not in second
    assert names("--threshold", "2") == [[], []]


def test_objects_are_answered_as_they_arrive(model, stdin, capsys):
    stdin(b'{"id": 7, "title": "red kettle"}\n{"id": 8, "title": ""}\n')
    assert main(["predict", str(model), "--input-format", "jsonl", "--top", "1"]) == 0
    first, second = printed(capsys)
    assert first["id"] == 7 and first["labels"][0]["label"] == "Home, kitchen & dining"
    assert second == {"id": 8, "text": "", "labels": []}


def test_what_cannot_be_asked(model, tmp_path, stdin, capsys):
    (tmp_path / "nonsense.txt").write_text("no such label\n", encoding="utf-8")
    for options, sentence in [
        (["--resume"], "--resume goes on with a file; name it with --out"),
        (["--allow", str(tmp_path / "nonsense.txt")], "the model knows no label"),
        (["--block", str(tmp_path / "nowhere.txt")], "no such file"),
        (["--text-column", "title"], "lines have no columns"),
    ]:
        stdin(b"hello\n")
        assert main(["predict", str(model), *options]) == 2
        assert sentence in capsys.readouterr().err


def test_probabilities_that_training_fitted(shop, model, tmp_path, capsys):
    """On products that were not trained on, about as many answers are right as the probabilities say."""
    source = str(shop / "held-out.csv")
    assert main(["predict", str(model), source, "--top", "3", "--probability"]) == 0
    answers = [label for row in printed(capsys) for label in row["labels"]]
    with (shop / "held-out.csv").open(encoding="utf-8", newline="") as stream:
        truth = [row["labels"].split(";") for row in csv.DictReader(stream)]
    right = [label["label"] in truth[number // 3] for number, label in enumerate(answers)]
    said = [label["probability"] for label in answers]
    assert all(0 <= p <= 1 for p in said) and abs(sum(said) - sum(right)) < 0.1 * len(answers)
    assert main(["predict", str(model), source, "--top", "3", "--probability", "--threshold", "0.5"]) == 0
    kept = [label for row in printed(capsys) for label in row["labels"]]
    assert kept == [label for label in answers if label["probability"] >= 0.5]
    assert main(["info", str(model)]) == 0
    assert "probabilities: fitted on 25 validation queries; calibration error" in capsys.readouterr().out
