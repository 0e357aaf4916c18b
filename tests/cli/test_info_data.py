"""`primexmc info DATA` says what a training would need, with derived settings or with those that are named."""

from __future__ import annotations

import json

import pytest

from primexmc.cli import main


@pytest.fixture
def table(tmp_path):
    rows = [f"a painting number {row},label {row % 12}|label {row % 7}" for row in range(80)]
    (tmp_path / "train.csv").write_text("\n".join(["text,labels", *rows]) + "\n")
    return tmp_path / "train.csv"


def test_the_estimate_stands_below_the_counts(table, capsys):
    values = ["--preset", "static-cpu", "--set", "training.device=cpu", "--set", "training.epochs=3"]
    assert main(["info", str(table), *values, "--set", "training.threads=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("training with static"))
    assert first > next(number for number, line in enumerate(lines) if line.startswith("train: 80 queries"))
    assert "GiB of main memory" in lines[first + 1] and "GPU" not in lines[first + 1]
    assert "  3 epochs" in lines[first + 3] and "s a step" in lines[-1]


def test_named_settings_reach_the_estimate(table, capsys):
    def facts(*values):
        assert main(["info", str(table), "--json", "--set", "training.device=cpu", *values]) == 0
        return json.loads(capsys.readouterr().out)["training"]

    minilm = facts("--preset", "minilm", "--set", "training.batch_size=10")
    assert minilm["encoder"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert minilm["queries_a_step"] == 10 and minilm["step_s"] is None and minilm["gpu_gib"] is None
    paper = facts("--preset", "lf-wikipedia-500k", "--set", "training.batch_size=10")
    assert paper["epochs"] == {"all": 50} and paper["steps"] == 50 * 8
    assert paper["memory_gib"]["encoder"] > 2 * minilm["memory_gib"]["encoder"]


def test_an_encoder_that_is_not_here_is_said(table, capsys):
    assert main(["info", str(table), "--set", "encoder.name=nobody/nothing", "--set", "training.device=cpu"]) == 0
    assert "memory and time are not known" in capsys.readouterr().out.splitlines()[-1]


def test_data_without_train_has_no_estimate(tmp_path, capsys):
    (tmp_path / "test.csv").write_text("text,labels\none,a\ntwo,b\n")
    (tmp_path / "labels.csv").write_text("uid,name\na,first\nb,second\n")
    assert main(["info", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "test: 2 queries" in out and "training with" not in out


def test_a_wrong_preset_is_said_before_data_is_read(tmp_path, capsys):
    assert main(["info", str(tmp_path), "--preset", "no-such"]) == 2
    assert "no preset" in capsys.readouterr().err


def test_a_model_has_its_own_settings(tmp_path, capsys):
    (tmp_path / "primexmc.json").write_text("{}")
    assert main(["info", str(tmp_path), "--preset", "minilm"]) == 2
    assert "are for DATA" in capsys.readouterr().err
