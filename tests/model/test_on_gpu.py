"""The model on a CUDA device: the same vectors as on the CPU, and in bf16 nearly so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.test_storage import NUM_LABELS, make_model
from model.tiny import KINDS, batch_of, batch_of_rows, random_texts, save_hugging_face, static_encoder

from primexmc.config import EncoderSettings
from primexmc.model import packed_attention
from primexmc.model.encode import autocast
from primexmc.model.encoder import load_encoder
from primexmc.model.model import PrimeModel

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
DEVICE = "cuda"
TEXTS = ["", "boat", *random_texts(0, 60), "red boat " * 15]


@pytest.fixture(params=["static", *KINDS])
def encoder(request, tmp_path):
    if request.param == "static":
        return static_encoder().eval()
    return load_encoder(EncoderSettings(name=str(save_hugging_face(tmp_path, request.param)))).eval()


@torch.no_grad()
def encoded(encoder, device, bf16=False):
    encoder.to(device)
    with autocast(torch.device(device), bf16):
        h = encoder(batch_of(encoder, TEXTS, device))
    assert h.dtype == torch.float32
    return h.cpu()


def test_as_on_the_cpu(encoder):
    torch.testing.assert_close(encoded(encoder, DEVICE), encoded(encoder, "cpu"), atol=1e-4, rtol=1e-4)


def test_bf16_is_near(encoder):
    exact, near = encoded(encoder, DEVICE), encoded(encoder, DEVICE, bf16=True)
    some = exact.norm(dim=1) > 0  # a static text without tokens is 0
    cosine = torch.nn.functional.cosine_similarity(exact[some], near[some], dim=1)
    assert some.sum() > 50 and cosine.min() > 0.99, "within the rounding of 8 bits"


@pytest.mark.parametrize("bf16", [False, True])
def test_texts_without_tokens_are_finite(encoder, bf16):
    encoder.to(DEVICE)
    for rows in ([], [[]], [[], [5, 6], []]):
        with autocast(torch.device(DEVICE), bf16):
            h = encoder.train()(batch_of_rows(rows, DEVICE))
        assert torch.isfinite(h).all()
        if h.requires_grad:
            h.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in encoder.parameters())


@pytest.mark.parametrize("name", ["short", "flash"])
@pytest.mark.parametrize("head_dim", [32, 64])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_kernels_as_fp32_on_the_cpu(name, head_dim, dtype):
    device = torch.device(DEVICE)
    assert packed_attention._works(name, head_dim, device, dtype), "it would be left out"
    assert packed_attention.trial(name, head_dim, device, dtype) < (0.01 if dtype == torch.bfloat16 else 0.002)


@pytest.mark.parametrize("name", ["short", "flash"])
def test_attention_dropout_is_the_same_forward_and_backward(name):
    """With equal scores the output is a mean of v with some left out; its gradient by v is the same numbers."""
    lengths = np.array([3, 5, 64, 60, 1, 0, 9] * 50)
    zeros = torch.zeros(int(lengths.sum()), 4, 32, device=DEVICE, dtype=torch.bfloat16)
    ones = torch.ones_like(zeros, requires_grad=True)
    torch.manual_seed(0)
    kept = packed_attention.KERNELS[name](lengths, torch.device(DEVICE))(zeros, zeros, ones, 0.3)
    kept.sum().backward()
    assert kept.float().mean().item() == pytest.approx(1, abs=0.02) and kept.float().std() > 0.05
    assert ones.grad.sum().item() == pytest.approx(kept.float().sum().item(), rel=0.01)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_packed_in_bf16_is_as_near_to_fp32_as_padded(kind, tmp_path):
    """Heads of 32 dimensions, so that our own kernel takes part; values and the gradients of all weights. Packed
    rows are bf16 between the layers, too, where padded ones are fp32: twice the rounding."""
    wide = {"dim": 64, "hidden_dim": 128} if kind == "distilbert" else {"hidden_size": 64, "intermediate_size": 128}
    save_hugging_face(tmp_path, kind, **wide)

    def values(packed, bf16):
        encoder = load_encoder(EncoderSettings(name=str(tmp_path), packed=packed, dropout=0.0)).train().to(DEVICE)
        with autocast(torch.device(DEVICE), bf16):
            h = encoder(batch_of(encoder, TEXTS[1:], DEVICE))
        (h * torch.randn(h.shape, generator=torch.Generator().manual_seed(0)).to(DEVICE)).sum().backward()
        return [h.detach(), *(parameter.grad for parameter in encoder.parameters())]

    for found, padded, exact in zip(values("on", True), values("off", True), values("off", False), strict=True):
        rounding = (padded - exact).norm()
        assert (found - exact).norm() <= 2 * rounding + 0.01 * exact.norm() + 1e-4
    for found, exact in zip(values("on", False), values("off", False), strict=True):
        assert (found - exact).norm() <= 1e-3 * exact.norm() + 1e-4, "what is left is rounding alone"


def test_a_model_moves_between_devices(tmp_path):
    model = make_model(**{"training.precision": "fp32"})
    model.save(tmp_path / "m")
    there = PrimeModel.load(tmp_path / "m", device=DEVICE)
    np.testing.assert_allclose(there.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    for one, other in zip(model.predict(TEXTS[1:], 3), there.predict(TEXTS[1:], 3), strict=True):
        assert [found.score for found in one] == pytest.approx([found.score for found in other], abs=1e-5)
    there.save(tmp_path / "again")
    back = PrimeModel.load(tmp_path / "again", device="cpu")
    assert torch.equal(back.prototypes_LD, model.prototypes_LD) and len(back.labels) == NUM_LABELS
