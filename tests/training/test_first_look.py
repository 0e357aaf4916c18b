"""The first look: what it gives is what looking again would give, and it depends on all that it should."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from primexmc.config import Settings
from primexmc.data.corpus import Corpus
from primexmc.model.encoder import load_encoder
from primexmc.training import first_look as module
from primexmc.training.data import prepare
from primexmc.training.first_look import first_look
from primexmc.training.phase import Phase

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(Settings().encoder)


def make_phase(encoder, words="red blue green", **values):
    settings = Settings().with_values(
        {"prototypes.num_free_vectors": 2} | {name.replace("__", "."): value for name, value in values.items()}, "test"
    )
    colours = words.split()
    corpus = Corpus.from_lists([f"a {colour} thing" for colour in colours] * 3, [[colour] for colour in colours] * 3)
    return Phase("all", settings, prepare(corpus, corpus.split("train"), encoder, settings), 1, False)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMEXMC_CACHE", str(tmp_path / "cache"))


def files(tmp_path):
    return sorted((tmp_path / "cache" / "first-look").glob("*"))


def test_the_second_look_reads_the_same_without_encoding(encoder, tmp_path, monkeypatch):
    phase = make_phase(encoder)
    first = first_look(phase, encoder, CPU)
    assert len(files(tmp_path)) == 1
    monkeypatch.setattr(module, "encode_tokens", lambda *_, **__: pytest.fail("encoded again"))
    second = first_look(phase, encoder, CPU)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert first[1].norm(dim=1).allclose(torch.ones(9))


@pytest.mark.parametrize(
    "changed", [{"words": "red blue black"}, {"training__seed": 1}, {"prototypes__num_free_vectors": 3}]
)
def test_another_training_looks_for_itself(encoder, tmp_path, changed):
    first_look(make_phase(encoder), encoder, CPU)
    first_look(make_phase(encoder, **changed), encoder, CPU)
    assert len(files(tmp_path)) == 2


def test_other_weights_look_for_themselves(encoder, tmp_path):
    phase = make_phase(encoder)
    first_look(phase, encoder, CPU)
    other = load_encoder(Settings().encoder)
    with torch.no_grad():
        other.weight_V[0] += 1
    first_look(phase, other, CPU)
    first_look(dataclasses.replace(phase, bf16=True), encoder, CPU)
    assert len(files(tmp_path)) == 3


def test_a_damaged_file_is_made_again(encoder, tmp_path):
    phase = make_phase(encoder)
    first = first_look(phase, encoder, CPU)
    files(tmp_path)[0].write_bytes(b"not tensors")
    assert torch.equal(first_look(phase, encoder, CPU)[1], first[1])
    assert files(tmp_path)[0].stat().st_size > 100


def test_a_cache_that_cannot_be_written_stops_nothing(encoder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    phase = make_phase(encoder)
    monkeypatch.setenv("PRIMEXMC_CACHE", str(tmp_path / "file" / "below"))
    assert len(first_look(phase, encoder, CPU)[1]) == 9
