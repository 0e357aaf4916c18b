"""Preset, then file, then single values; what none names is derived."""

from __future__ import annotations

import pytest
from training.cases import make_corpus

from primexmc.config import Settings
from primexmc.errors import UserError
from primexmc.presets import load_preset, preset_names, preset_text
from primexmc.training.resolve import resolve


@pytest.fixture
def config(tmp_path):
    def write(text):
        (tmp_path / "my.toml").write_text(text, encoding="utf-8")
        return tmp_path / "my.toml"

    return write


def test_the_last_word_wins(config):
    corpus = make_corpus()
    file = config("[training]\nlearning_rate = 0.5\nepochs = 7\n[loss]\nname = 'margin'\n")
    settings, derived = resolve(corpus, "static-cpu", file, {"training.epochs": 3})
    assert settings.training.epochs == 3, "single values over the file"
    assert settings.training.learning_rate == 0.5 and settings.loss.name == "margin", "the file over the preset"
    assert settings.prototypes.width == 256, "the preset over the defaults"
    assert settings.training.batch_size == 32 and derived["training.batch_size"] == 32, "derived where nobody spoke"
    assert "training.epochs" not in derived and "preset" not in derived


def test_nested_values_count_as_given():
    settings, derived = resolve(make_corpus(), "static-cpu", None, {"training": {"epochs": 3}})
    assert settings.training.epochs == 3 and "training.epochs" not in derived


def test_without_a_preset_the_device_chooses_one(config, monkeypatch):
    assert resolve(make_corpus(), None, None, {"training.device": "cpu"})[1]["preset"] == "static-cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert resolve(make_corpus(), None, None, {})[1]["preset"] == "best"
    assert resolve(make_corpus(), None, config("[training]\ndevice = 'cpu'\n"), {})[1]["preset"] == "static-cpu"


def test_a_smallest_cluster_above_the_derived_largest():
    settings, _ = resolve(make_corpus(), "static-cpu", None, {"sampling.smallest_cluster": 32})
    assert settings.sampling.largest_cluster == 32


@pytest.mark.parametrize("name", preset_names())
def test_every_preset(name):
    """Its header says what it is, its values are valid, and it resolves for a small corpus."""
    text, values = preset_text(name), load_preset(name)
    assert text.startswith(f"# {name}: ") and text.splitlines()[1].startswith("#")
    Settings().with_values(values, name)
    settings, _ = resolve(make_corpus(), name, None, {"training.device": "cpu"})
    for section, fields in values.items():
        for key, value in fields.items():
            assert getattr(getattr(settings, section), key) == value


def test_the_paper_preset_says_what_the_paper_says():
    settings = Settings().with_values(load_preset("lf-amazontitles-131k"), "preset")
    assert (settings.training.epochs, settings.training.batch_size, settings.training.learning_rate) == (
        300,
        3200,
        3e-4,
    )
    assert (settings.prototypes.num_free_vectors, settings.prototypes.heads, settings.prototypes.width) == (
        65536,
        1,
        1024,
    )
    assert (settings.data.propensity_a, settings.data.propensity_b, settings.data.query_tokens) == (0.6, 2.6, 32)
    assert settings.prototypes.centroid_mode == "ema" and settings.prototypes.drop_centroid == 0
    assert settings.loss.name == "margin" and settings.loss.tie_gradient == 0.5


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"training.epoch": 3}, ['"training.epoch"', 'Did you mean "training.epochs"?']),
        ({"trainign.epochs": 3}, ['Did you mean "training.epochs"?']),
        ({"training": 3}, ['unknown setting "training"']),
        ({"training.epochs": "many"}, ["training.epochs", "whole number"]),
        ({"training.epochs": 0}, ["training.epochs", "at least 1"]),
        ({"training.epochs": {"deep": 1}}, ["training.epochs"]),
        ({"loss.name": "margn"}, ["margin", "softmax", "Did you mean"]),
        ({"loss.margin_min": 0.9}, ["margin_min", "margin_max"]),
    ],
)
def test_a_wrong_value_is_one_sentence(values, words):
    with pytest.raises(UserError) as caught:
        resolve(make_corpus(), "static-cpu", None, values)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


def test_wrong_files_and_presets_are_named(config, tmp_path):
    corpus = make_corpus()
    with pytest.raises(UserError, match=r'my\.toml.*Did you mean "training\.epochs"'):
        resolve(corpus, None, config("[training]\nepoch = 3\n"), {})
    with pytest.raises(UserError, match=r"my\.toml: not a TOML file"):
        resolve(corpus, None, config("epochs: 3"), {})
    with pytest.raises(UserError, match=r"none\.toml: no such settings file"):
        resolve(corpus, None, tmp_path / "none.toml", {})
    with pytest.raises(UserError, match='Did you mean "static-cpu"'):
        resolve(corpus, "static_cpu", None, {})
    with pytest.raises(UserError, match="gpu9"):
        resolve(corpus, None, None, {"training.device": "gpu9"})
