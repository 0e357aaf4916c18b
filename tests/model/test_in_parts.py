"""The encoder part by part: the same vectors and gradients, and less is kept."""

from __future__ import annotations

import pytest
import torch
from model.tiny import THINGS, batch_of, save_hugging_face, static_encoder

from primexmc.config import EncoderSettings
from primexmc.model.encoder import load_encoder
from primexmc.model.in_parts import encode_in_parts

TEXTS = [f"a painting of a {one} and {two}" for one in THINGS for two in THINGS[:3]] + ["", "boat"]


@pytest.fixture(params=["static", "bert"])
def encoder(request, tmp_path):
    torch.manual_seed(0)
    if request.param == "static":
        return static_encoder().train()
    save_hugging_face(tmp_path / "bert", "bert")
    return load_encoder(EncoderSettings(name=str(tmp_path / "bert"), dropout=0.0)).train()


def gradients(encoder, size):
    encoder.zero_grad()
    h_BD = encode_in_parts(encoder, batch_of(encoder, TEXTS), size)
    (h_BD * torch.linspace(-1, 1, h_BD.numel()).view_as(h_BD)).sum().backward()
    return h_BD.detach(), {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("size", [1, 5, 16, 32, 1000])
def test_vectors_and_gradients_are_the_same(encoder, size):
    h, whole = gradients(encoder, 0)
    h_parts, parts = gradients(encoder, size)
    torch.testing.assert_close(h_parts, h, atol=1e-5, rtol=1e-5)
    assert parts.keys() == whole.keys() and len(parts) > 1
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], atol=1e-4, rtol=1e-4)


def test_less_is_kept_and_everything_is_encoded_twice(tmp_path):
    save_hugging_face(tmp_path / "bert", "bert")
    encoder = load_encoder(EncoderSettings(name=str(tmp_path / "bert"))).train()
    batch, seen = batch_of(encoder, TEXTS), []
    encoder.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    kept = {}
    for size in (0, 8):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, sizes=sizes: sizes.append(x.numel()) or x, lambda x: x):
            h_BD = encode_in_parts(encoder, batch, size)
        kept[size] = sum(sizes)
        h_BD.sum().backward()
    assert kept[8] < kept[0] / 20
    assert seen == [32] + [8] * 8


def test_dropout_draws_the_same_the_second_time():
    """With other numbers the gradient would be that of another function."""
    encoder = static_encoder(dropout=0.5).train()
    torch.manual_seed(1)
    h_BD = encode_in_parts(encoder, batch_of(encoder, TEXTS), 7)
    h_BD.sum().backward()
    with torch.no_grad():  # h is linear in the vectors: the gradient times the vectors is the sum of h
        again = (encoder.vectors_VD.grad * encoder.vectors_VD).sum()
    torch.testing.assert_close(again, h_BD.sum().detach(), atol=1e-3, rtol=1e-4)


def test_no_text():
    assert encode_in_parts(static_encoder(), batch_of(static_encoder(), []), 5).shape == (0, static_encoder().dim)
