"""Sizes told from config.json, against the models themselves."""

from __future__ import annotations

import json

import pytest
from model import tiny

from primexmc.config import EncoderSettings
from primexmc.model.encoder import load_encoder
from primexmc.model.size import KNOWN, encoder_size


def parameters(encoder):
    return sum(parameter.numel() for parameter in encoder.parameters())


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_parameters_and_dimensions(kind, tmp_path):
    tiny.save_hugging_face(tmp_path, kind)
    encoder, size = load_encoder(EncoderSettings(name=str(tmp_path))), encoder_size(str(tmp_path))
    assert size.dim == encoder.dim == tiny.DIM
    assert size.num_parameters == pytest.approx(parameters(encoder), rel=0.03)
    config = json.loads((tmp_path / "config.json").read_text())
    assert size.num_layers == config.get("n_layers", config.get("num_hidden_layers"))
    assert size.heads == config.get("n_heads", config.get("num_attention_heads"))


def test_static():
    encoder, size = load_encoder(EncoderSettings(name="static")), encoder_size("static")
    assert (size.num_parameters, size.dim, size.num_layers) == (parameters(encoder), encoder.dim, 0)


def test_published_sizes_of_known_encoders():
    millions = {name.split("/")[1]: encoder_size(name).num_parameters / 1e6 for name in KNOWN}
    assert millions == pytest.approx({"all-MiniLM-L6-v2": 22.6, "msmarco-distilbert-base-v4": 66.4}, rel=0.01)


@pytest.mark.parametrize("config", [None, "{}", "not JSON", '{"hidden_size": "wide"}'])
def test_unknown(tmp_path, config):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    assert encoder_size(str(tmp_path)) is None


def test_a_name_nobody_knows():
    assert encoder_size("nobody/no-such-encoder") is None
    assert encoder_size("no such name at all") is None
