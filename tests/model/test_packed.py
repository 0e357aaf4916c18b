"""Texts laid end to end: values and gradients are those of the Hugging Face modules on padded texts."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from model.tiny import KINDS, batch_of, batch_of_rows, random_texts, save_hugging_face
from torch.nn import functional

from primexmc.config import EncoderSettings
from primexmc.model import packed, packed_attention
from primexmc.model.encoder import load_encoder
from primexmc.model.layers import parts_of
from primexmc.model.packed_attention import by_length

PACKED = ["bert", "minilm", "distilbert", "roberta"]
TEXTS = ["boat", *random_texts(0, 20), "red boat " * 15, "red boat"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return {kind: save_hugging_face(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def both(place, **settings):
    """(packed, padded) with the same weights."""
    return [load_encoder(EncoderSettings(name=str(place), packed=packed, **settings)) for packed in ("auto", "off")]


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_values_and_gradients_as_padded(saved, kind, pooling):
    results = []
    for encoder in both(saved[kind], pooling=pooling, dropout=0.0):
        h = encoder.train()(batch_of(encoder, TEXTS))
        (h * torch.randn(h.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
        results.append((h.detach(), {name: p.grad for name, p in encoder.named_parameters()}))
    (h, gradients), (expected_h, expected) = results
    torch.testing.assert_close(h, expected_h, atol=1e-5, rtol=1e-5)
    assert gradients.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(gradients[name], expected[name], atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_packed(saved, kind):
    auto, off = both(saved[kind])
    assert (auto.parts is not None) == (kind in {*PACKED, "e5"})
    assert off.parts is None


def test_what_is_not_done_here_is_padded(saved):
    transformer = load_encoder(EncoderSettings(name=str(saved["bert"]))).transformer
    assert parts_of(transformer) is not None
    transformer.config.position_embedding_type = "relative_key"
    assert parts_of(transformer) is None
    transformer.config.position_embedding_type, transformer.config.is_decoder = "absolute", True
    assert parts_of(transformer) is None
    transformer.config.is_decoder = False
    transformer.encoder.layer = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    assert parts_of(transformer) is None


def test_no_padding_token_is_computed(saved, monkeypatch):
    rows = []

    def count(x, weight, bias):
        rows.append(len(x))
        return linear(x, weight, bias)

    linear = functional.linear
    monkeypatch.setattr(packed.functional, "linear", count)
    encoder = both(saved["bert"])[0].eval()
    batch = batch_of_rows([[5] * length for length in (3, 1, 30, 0, 3, 17)])
    encoder(batch)
    assert rows == [54] * 6 * 2  # six products in each of two layers


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_dropout_strikes_where_the_library_strikes(saved, kind):
    """Mean and spread over many draws, dimension by dimension; heads, feed-forward and attention alike."""
    torch.manual_seed(0)
    moments = []
    for encoder in both(saved[kind], dropout=0.3):
        with torch.no_grad():
            h = encoder.train()(batch_of(encoder, ["a red boat and a dog"] * 6000))
        moments.append((h.mean(dim=0), h.std(dim=0)))
    (mean, spread), (expected_mean, expected_spread) = moments
    assert expected_spread.min() > 0.05
    error = expected_spread * (2 / 6000) ** 0.5
    assert ((mean - expected_mean).abs() / error).max() < 4.5
    assert ((spread - expected_spread).abs() / error).max() < 4.5


def test_under_autocast_it_is_near(saved):
    """bf16 throughout, as on a GPU."""
    encoder, plain = (made.eval() for made in both(saved["minilm"]))
    batch = batch_of(encoder, TEXTS)
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = encoder(batch)
        exact = plain(batch)
    assert h.dtype == torch.float32 and not torch.equal(h, exact)
    assert functional.cosine_similarity(h, exact, dim=1).min() > 0.995


@pytest.mark.parametrize("lengths", [[1], [2, 2, 2], [0, 0, 1, 4, 4, 9], [0]])
def test_attention_by_length_as_a_loop(lengths):
    generator = torch.Generator().manual_seed(1)
    q, k, v = torch.randn(3, sum(lengths), 2, 8, generator=generator, dtype=torch.float64)
    found = by_length(np.array(lengths))(q, k, v, 0.0)
    start = 0
    for length in lengths:
        for head in range(2):
            rows = slice(start, start + length)
            weights = torch.softmax(q[rows, head] @ k[rows, head].T / 8**0.5, dim=1)
            torch.testing.assert_close(found[rows, head], weights @ v[rows, head])
        start += length


def test_a_kernel_that_errs_or_fails_is_not_used(monkeypatch):
    def wrong(lengths, device):
        return lambda q, k, v, dropout: v + 0 * q * k

    def broken(lengths, device):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(packed_attention, "KERNELS", {"wrong": wrong, "broken": broken})
    for name in ("wrong", "broken"):
        with pytest.warns(UserWarning, match=f"attention kernel '{name}'"):
            assert not packed_attention._works(name, 16, torch.device("cpu"), torch.float32)


IN_THE_INTERPRETER = """
import numpy as np, torch
from primexmc.model import packed_attention
from primexmc.model.short_attention import Windows, short_attention
cpu = torch.device("cpu")
assert packed_attention.trial("short", 32, cpu, torch.float32) < 1e-5
assert packed_attention.trial("short", 16, cpu, torch.float16) < 2e-3
lengths = np.array([3, 5, 64, 60, 1, 128, 7, 0, 9])
windows = Windows.of(lengths, cpu)
assert windows.start_N1.tolist() == [0, 72, 133, 261, 277] and windows.rows == 128
shape = (int(lengths.sum()), 2, 16)
q, k, v, up, e = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0))
def dropped(q, k, v):
    torch.manual_seed(3)
    return short_attention(q, k, v, windows, 0.3)
kept = dropped(torch.zeros(shape), torch.zeros(shape), torch.ones(shape))
assert abs(kept.mean() - 1) < 0.02 and kept.std() > 0.05 and not torch.equal(kept[:, 0], kept[:, 1])
single = torch.cat([row for row in kept.split(lengths.tolist()) if len(row) == 1])
assert all(min(abs(value), abs(value - 1 / 0.7)) < 1e-5 for value in single.flatten().tolist())
inputs = [x.clone().requires_grad_() for x in (q, k, v)]
gradients = torch.autograd.grad(dropped(*inputs), inputs, up)
for at, gradient in enumerate(gradients):
    moved = [[x + sign * 1e-2 * e * (i == at) for i, x in enumerate((q, k, v))] for sign in (1, -1)]
    slope = ((dropped(*moved[0]) - dropped(*moved[1])) * up).sum() / 2e-2
    assert abs(slope - (gradient * e).sum()) < 0.01, at
"""


@pytest.mark.slow
def test_the_short_kernel_in_tritons_interpreter():
    """On the CPU, where Triton is: values, gradients, and dropout that is the same forward and backward."""
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_INTERPRETER], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_texts_without_tokens_are_zero(saved, pooling):
    encoder = both(saved["bert"], pooling=pooling)[0].eval()
    with torch.no_grad():
        for rows in ([], [[], []], [[], [5, 6], []]):
            h = encoder(batch_of_rows(rows))
            assert h.shape == (len(rows), encoder.dim)
            assert not h[[at for at, row in enumerate(rows) if not row]].any()
        torch.testing.assert_close(h[1], encoder(batch_of_rows([[5, 6]]))[0])
