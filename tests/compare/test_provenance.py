"""Keys change with whatever changes the numbers, and commands can be typed."""

from __future__ import annotations

import dataclasses
import shlex

import pytest
from compare.cases import THINGS, make_corpus, make_split

from primexmc import __version__
from primexmc.compare import provenance
from primexmc.compare.provenance import commit, corpus_key, retold, row_command, row_key
from primexmc.data.corpus import Labels


def test_the_same_data_has_the_same_key():
    assert corpus_key(make_corpus()) == corpus_key(make_corpus())


@pytest.mark.parametrize(
    "change",
    [
        {"train": make_split(5, 90)},
        {"test": make_split(1, 25, filtered=True)},
        {"test": make_split(2, 25)},
        {"val": make_split(3, 10)},
        {"labels": Labels(THINGS, THINGS, [thing.upper() for thing in THINGS])},
    ],
    ids=["train", "filter", "test", "val", "labels"],
)
def test_other_data_has_another_key(change):
    assert corpus_key(dataclasses.replace(make_corpus(), **change)) != corpus_key(make_corpus())


def test_a_row_has_another_key_when_anything_differs():
    plans = [
        ("data", "prime", "theta", 0, {"a": 1, "b": 2}),
        ("other", "prime", "theta", 0, {"a": 1, "b": 2}),
        ("data", "ngame", "theta", 0, {"a": 1, "b": 2}),
        ("data", "prime", "W", 0, {"a": 1, "b": 2}),
        ("data", "prime", "theta", 1, {"a": 1, "b": 2}),
        ("data", "prime", "theta", 0, {"a": 1, "b": 3}),
    ]
    assert len({row_key(*plan) for plan in plans}) == len(plans)
    assert row_key(*plans[0]) == row_key("data", "prime", "theta", 0, {"b": 2, "a": 1})


def test_commands_are_quoted():
    words = retold("my data", None, "minilm", "own.toml", {"encoder.name": "a b", "training": {"epochs": 3, "seed": 4}})
    command = row_command(words, "prime", "memory", 4)
    assert shlex.split(command) == [
        *("primexmc", "compare", "my data", "--preset", "minilm", "--config", "own.toml"),
        *("--set", "encoder.name=a b", "--set", "training.epochs=3"),
        *("--methods", "prime", "--modes", "memory", "--set", "training.seed=4"),
    ]


def test_outside_a_checkout_the_version_stands_for_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "site-packages" / "primexmc")
    monkeypatch.delenv("PRIMEXMC_COMMIT", raising=False)
    assert commit() == __version__
    monkeypatch.setenv("PRIMEXMC_COMMIT", "abc123")
    assert commit() == "abc123"
