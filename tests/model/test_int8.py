"""8-bit products against rounding by hand, and when a model uses them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.test_storage import make_model
from model.tiny import random_texts, save_hugging_face, static_encoder
from training.cases import make_split

from primexmc.config import EncoderSettings
from primexmc.evaluation import int8_cost as cost
from primexmc.model.encoder import load_encoder
from primexmc.model.int8 import Int8Encoder, Int8Linear, is_quicker
from primexmc.model.model import PrimeModel

TEXTS = ["", "boat", *random_texts(0, 20), "red boat " * 30]


@pytest.mark.parametrize("tokens", [1, 2, 7, 40])
def test_a_product_against_loops(tokens):
    torch.manual_seed(tokens)
    linear, x = torch.nn.Linear(24, 16), torch.randn(tokens, 24)
    x[0] = 0
    found = Int8Linear(linear)(x)
    weight, bias = linear.weight.detach().double().numpy(), linear.bias.detach().double().numpy()
    for token, row in enumerate(x.double().numpy()):
        x_scale = max(abs(value) for value in row) / 127
        for output in range(16):
            w_scale = max(abs(value) for value in weight[output]) / 127
            total = sum(
                round(value / x_scale) * round(w / w_scale) if x_scale else 0
                for value, w in zip(row, weight[output], strict=True)
            )
            assert found[token, output].item() == pytest.approx(total * x_scale * w_scale + bias[output], abs=0.02)


def made(tmp_path, kind="bert", pooling="mean", **values):
    source = save_hugging_face(tmp_path / "source", kind)
    encoder = load_encoder(EncoderSettings(name=str(source), pooling=pooling))
    values = {"encoder.name": str(source), "encoder.pooling": pooling, "data.query_tokens": 20} | values
    return make_model(encoder=encoder, **values)


@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("distilbert", "cls"), ("roberta", "mean")])
def test_vectors_are_nearly_those_of_fp32_and_do_not_depend_on_the_batch(tmp_path, kind, pooling):
    precise = made(tmp_path, kind, pooling, **{"search.encoder": "fp32"})
    quick = made(tmp_path, kind, pooling, **{"search.encoder": "int8"})
    h, other = precise.encode(TEXTS), quick.encode(TEXTS)
    assert not np.array_equal(h, other)
    assert (h * other).sum(1).min() > 0.995
    alone = np.concatenate([quick.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, other, atol=2e-2)
    assert isinstance(quick._reader.encoder, Int8Encoder) and quick.network.encoder is not quick._reader.encoder


@pytest.mark.parametrize(
    ("setting", "facts", "is_int8"),
    [
        ("auto", {}, False),
        ("auto", {"int8_cost": 0.19}, True),
        ("auto", {"int8_cost": 0.2}, False),
        ("auto", {"int8_cost": -0.3}, True),
        ("fp32", {"int8_cost": 0.0}, False),
        ("int8", {"int8_cost": 5.0}, True),
    ],
)
def test_when_it_is_used(tmp_path, monkeypatch, setting, facts, is_int8):
    monkeypatch.setattr("primexmc.model.int8.is_quicker", lambda: True)
    model = made(tmp_path, **{"search.encoder": setting})
    model.facts = facts
    model.save(tmp_path / "model")
    found = PrimeModel.load(tmp_path / "model", device="cpu")
    assert isinstance(found._reader.encoder, Int8Encoder) == is_int8


def test_a_machine_on_which_it_is_slower_takes_fp32(tmp_path, monkeypatch):
    model = made(tmp_path)
    model.facts = {"int8_cost": 0.0}
    model.save(tmp_path / "model")
    monkeypatch.setattr("primexmc.model.int8.is_quicker", lambda: False)
    found = PrimeModel.load(tmp_path / "model", device="cpu")
    assert found._reader.encoder is found.network.encoder
    assert is_quicker() in (True, False)


def test_an_encoder_that_cannot_stays_as_it_is(tmp_path):
    model = make_model(encoder=static_encoder(), **{"search.encoder": "int8"})
    assert model._reader.encoder is model.network.encoder
    assert cost.int8_cost(model, make_split(0, 5, 8)) is None
    model = made(tmp_path, "modernbert", **{"search.encoder": "int8"})
    assert model._reader.encoder is model.network.encoder


def test_the_cost_is_counted_in_points(tmp_path, monkeypatch):
    """By the predictions of two models, one of them in int8."""
    precise, quick = (made(tmp_path, **{"search.encoder": name}) for name in ("fp32", "int8"))
    held_out = make_split(3, 60, 8)
    share = []
    for model in (precise, quick):
        best = [row[0].id if row else -1 for row in model.predict(held_out.texts, 1)]
        share.append(np.mean([label in held_out.positives[[row]].indices for row, label in enumerate(best)]))
    assert cost.int8_cost(precise, held_out) == pytest.approx(100 * (share[0] - share[1]), abs=1e-3)
