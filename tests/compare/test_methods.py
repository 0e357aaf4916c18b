"""The methods' files: all of them can be read, and each says what it is."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path

import pytest

import primexmc
from primexmc.compare.methods import file_names
from primexmc.compare.peer import Peer
from primexmc.compare.recipe import Recipe
from primexmc.compare.registry import find_method, method_names
from primexmc.config import Settings, all_settings

ROOT = Path(primexmc.__file__).parents[2]


@pytest.mark.parametrize("name", file_names())
def test_every_file_is_a_method(name):
    method = find_method(name)
    text = (resources.files("primexmc.compare.methods") / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}: "), "the header says what it is"
    if isinstance(method, Recipe):
        assert {*method.values, *method.times} <= all_settings().keys()
    else:
        assert isinstance(method, Peer) and method.reads in {"features", "texts"}
        assert (ROOT / "benchmarks" / "peers" / f"{method.peer}.txt").exists()
        assert (ROOT / "benchmarks" / "peers" / f"{method.peer}_peer.py").exists()


def test_what_there_is():
    ours = {
        "prime",
        "prime-lite",
        "prime-softmax",
        "ngame",
        "dexa",
        "dpr",
        "ance",
        "dexml",
        "dexml-pool",
        "dexml-batch",
    }
    simple = {"popularity", "tfidf-neighbours", "zero-shot"}
    peers = {"pecos-xrlinear-1", "pecos-xrlinear-3", "omikuji-parabel", "omikuji-bonsai", "bm25"}
    assert ours | simple | peers <= set(method_names())


def test_a_file_takes_over_what_its_base_says():
    one, three = find_method("pecos-xrlinear-1"), find_method("pecos-xrlinear-3")
    assert {**one.settings, "num_trees": 3} == three.settings and (one.peer, one.reads) == (three.peer, three.reads)
    lite, prime = find_method("prime-lite"), find_method("prime")
    assert lite.values == {**prime.values, "sampling.positives_per_query": 1} and not prime.times


def test_the_help_names_every_method():
    from primexmc.cli.compare import EPILOG

    assert all(name in EPILOG for name in method_names())


def test_the_field_is_what_its_papers_say():
    """Each against the plain values, resolved over the default settings."""
    settings = {name: Settings().with_values(find_method(name).values, name) for name in file_names() if ours(name)}
    for name in ("ngame", "dpr", "ance", "dexml", "dexml-pool", "dexml-batch"):
        s = settings[name]
        assert not s.prototypes.enabled and (s.loss.text_weight, s.loss.reverse_weight) == (1.0, 0.0), name
    dexa, ngame = settings["dexa"], settings["ngame"]
    assert (dexa.prototypes.combine, dexa.prototypes.centroid, dexa.prototypes.free_vector) == ("sum", False, True)
    assert (dexa.loss.prototype_weight, dexa.loss.text_weight, dexa.loss.reverse_weight) == (1.0, 0.0, 0.0)
    assert dataclasses.replace(dexa.loss, text_weight=1.0) == ngame.loss and dexa.sampling == ngame.sampling
    assert (settings["dpr"].loss.name, settings["dpr"].sampling.batches) == ("contrastive", "random")
    assert settings["ance"].sampling == dataclasses.replace(
        settings["dpr"].sampling, negatives="mined", mined_depth=200
    )
    negatives = [settings[name].sampling.negatives for name in ("dexml-batch", "dexml-pool", "dexml")]
    assert negatives == ["batch", "pool", "all"] and settings["dexml"].loss.name == "softmax"
    assert settings["dexml"].training.texts_at_once > 0


def ours(name):
    return isinstance(find_method(name), Recipe)
