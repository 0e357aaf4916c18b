"""What the untrained encoder sees is kept, and found again only by what would see the same."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from model.tiny import static_encoder
from safetensors import SafetensorError
from training.cases import make_corpus, make_phase, quick

from primexmc.data.token_cache import default_cache_dir
from primexmc.training import first_look as module
from primexmc.training.first_look import first_look

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMEXMC_CACHE", str(tmp_path))
    assert default_cache_dir() == tmp_path
    return tmp_path / "first-look"


def look(monkeypatch, corpus=None, encoder=None, bf16=False, **values):
    """What it gives, and whether the encoder was asked."""
    asked = []
    encode = module.encode_tokens
    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_tokens", lambda *args, **how: (asked.append(1), encode(*args, **how))[1])
        encoder = encoder or static_encoder()
        phase = dataclasses.replace(make_phase(corpus or make_corpus(50), encoder, quick(**values)), bf16=bf16)
        return first_look(phase, encoder, CPU), bool(asked)


def test_the_second_look_is_the_first(monkeypatch, cache):
    first, asked = look(monkeypatch)
    again, asked_again = look(monkeypatch)
    assert asked and not asked_again and len(list(cache.iterdir())) == 1
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert torch.allclose(again[1].norm(dim=1), torch.ones(50))


@pytest.mark.parametrize(
    "other",
    [
        {"corpus": make_corpus(50, seed=9)},
        {"corpus": make_corpus(51)},
        {"encoder": static_encoder(seed=1)},
        {"bf16": True},
        {"training__seed": 1},
        {"prototypes__num_free_vectors": 3},
        {"data__query_tokens": 3},
    ],
)
def test_what_would_see_something_else_looks_itself(other, monkeypatch):
    look(monkeypatch)
    seen, asked = look(monkeypatch, **other)
    assert asked
    again, _ = look(monkeypatch, **other)
    assert torch.equal(seen[0], again[0]) and torch.equal(seen[1], again[1])


def test_settings_that_do_not_matter_do_not_matter(monkeypatch):
    look(monkeypatch)
    assert not look(monkeypatch, training__epochs=9, loss__name="margin", training__learning_rate=0.5)[1]


def test_damage_is_looked_past(monkeypatch, cache):
    first, _ = look(monkeypatch)
    for content in (b"", b"nonsense", next(cache.iterdir()).read_bytes()[:-100]):
        next(cache.iterdir()).write_bytes(content)
        again, asked = look(monkeypatch)
        assert asked and torch.equal(first[1], again[1])


def test_a_cache_that_cannot_be_written(monkeypatch, cache):
    cache.write_text("a file where the directory would be")
    assert look(monkeypatch)[1] and look(monkeypatch)[1]


def test_a_full_disk_is_no_reason_to_stop(monkeypatch, cache):
    def full(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(module, "save_file", full)
    assert look(monkeypatch)[1] and look(monkeypatch)[1] and not list(cache.iterdir())


def test_what_is_too_large_is_not_kept(monkeypatch, cache):
    monkeypatch.setattr(module, "LARGEST_KEPT", 100)
    assert look(monkeypatch)[1] and look(monkeypatch)[1] and not cache.exists()
