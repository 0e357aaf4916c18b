"""Checkpoints: complete or not there, the newest counts, damage is said."""

from __future__ import annotations

import json

import pytest
import torch

from primexmc.errors import UserError
from primexmc.training.checkpoint import Checkpoint, has_checkpoint, load_checkpoint, save_checkpoint


def make(number):
    tensors = {
        "f32": torch.randn(3, 2),
        "bf16": torch.randn(3).bfloat16(),
        "i64": torch.arange(5),
        "bool": torch.tensor([True, False]),
        "u8": torch.get_rng_state(),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, dtype=torch.int64),
        "empty rows": torch.zeros(0, 7),
        "view": torch.randn(4, 4).T,
    }
    return Checkpoint(tensors, {"step": number, "third": 1 / 3}, {"phase": "choose", "settings": {"a": [1 / 30]}})


def test_what_is_loaded_is_what_was_saved(tmp_path):
    assert load_checkpoint(tmp_path / "training") is None and not has_checkpoint(tmp_path / "training")
    saved = make(1)
    save_checkpoint(tmp_path / "training", saved)
    loaded = load_checkpoint(tmp_path / "training")
    assert has_checkpoint(tmp_path / "training")
    assert loaded.numbers == saved.numbers and loaded.run == saved.run
    assert loaded.tensors.keys() == saved.tensors.keys()
    for name, value in saved.tensors.items():
        assert loaded.tensors[name].dtype == value.dtype and torch.equal(loaded.tensors[name], value), name


def test_tensors_that_share_memory(tmp_path):
    shared = torch.randn(3, 3)
    save_checkpoint(tmp_path, Checkpoint({"a": shared, "b": shared, "c": shared[1]}, {}, {}))
    loaded = load_checkpoint(tmp_path).tensors
    assert torch.equal(loaded["a"], shared) and torch.equal(loaded["b"], shared) and torch.equal(loaded["c"], shared[1])


def test_the_newest_counts_and_the_older_are_removed(tmp_path):
    for number in range(12):
        save_checkpoint(tmp_path, make(number))
        assert load_checkpoint(tmp_path).numbers["step"] == number
        assert len(list(tmp_path.iterdir())) == 1
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}


def test_when_writing_fails_the_older_one_stays(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, make(1))
    monkeypatch.setattr("primexmc.training.checkpoint.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_checkpoint(tmp_path, make(2))
    monkeypatch.undo()
    assert load_checkpoint(tmp_path).numbers["step"] == 1 and len(list(tmp_path.iterdir())) == 1


def test_a_process_killed_while_writing_leaves_the_older_one(tmp_path):
    save_checkpoint(tmp_path, make(1))
    (tmp_path / ".checkpoint-000002.new-abc").mkdir()
    (tmp_path / ".checkpoint-000002.new-abc" / "state.json").write_text("{")
    assert load_checkpoint(tmp_path).numbers["step"] == 1
    save_checkpoint(tmp_path, make(2))
    assert load_checkpoint(tmp_path).numbers["step"] == 2


DAMAGE = {
    "no tensors": lambda place: (place / "state.safetensors").unlink(),
    "half the tensors": lambda place: (place / "state.safetensors").write_bytes(b"12345678"),
    "no description": lambda place: (place / "state.json").unlink(),
    "half a description": lambda place: (place / "state.json").write_text("{"),
    "a list": lambda place: (place / "state.json").write_text("[]"),
    "no numbers": lambda place: (place / "state.json").write_text('{"format_version": 1}'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_sentence(tmp_path, damage):
    save_checkpoint(tmp_path, make(1))
    DAMAGE[damage](tmp_path / "checkpoint-000001")
    with pytest.raises(UserError, match=r"checkpoint-000001.*damaged.*--overwrite") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_newer_format_is_said_before_anything_is_read(tmp_path):
    save_checkpoint(tmp_path, make(1))
    (tmp_path / "checkpoint-000001" / "state.json").write_text(json.dumps({"format_version": 99}))
    with pytest.raises(UserError, match="format version 99"):
        load_checkpoint(tmp_path)
