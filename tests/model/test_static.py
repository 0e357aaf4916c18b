"""The static encoder against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import DIM, batch_of, batch_of_rows, random_texts, static_encoder

from primexmc.config import EncoderSettings, Settings
from primexmc.errors import UserError
from primexmc.model.encoder import load_encoder
from primexmc.model.static import StaticEncoder
from primexmc.model.token_batch import TokenBatch


def slow(encoder, ids):
    total = np.zeros(DIM)
    for i in ids:
        total += encoder.weight_V[i].item() * encoder.vectors_VD[i].detach().double().numpy()
    return total / max(len(ids), 1)


def test_the_mean_of_weighted_vectors():
    encoder, texts = static_encoder(), ["", *random_texts(1, 20), "boat"]
    h = encoder(batch_of(encoder, texts))
    for row, text in enumerate(texts):
        ids = encoder.tokenizer.encode(text, add_special_tokens=False).ids
        np.testing.assert_allclose(h[row].detach().numpy(), slow(encoder, ids), atol=1e-5)
    assert h[0].abs().max() == 0, "an empty text gets zeros"


@pytest.mark.parametrize("rows", [[], [[]], [[], [5], []]])
def test_little_or_nothing(rows):
    h = static_encoder()(batch_of_rows(rows))
    assert h.shape == (len(rows), DIM) and torch.isfinite(h).all()


def test_gradient_of_vectors_and_weights():
    encoder, direction = static_encoder(), torch.randn(2, DIM)
    (encoder(batch_of_rows([[5, 6, 5], []])) * direction).sum().backward()
    for token, count in ((5, 2), (6, 1), (7, 0)):
        expected = count / 3 * encoder.weight_V[token].item() * direction[0]
        assert torch.allclose(encoder.vectors_VD.grad[token], expected, atol=1e-6)
        along = count / 3 * (encoder.vectors_VD[token] @ direction[0]).item()
        assert encoder.weight_V.grad[token].item() == pytest.approx(along, abs=1e-6)


def test_dropout_leaves_whole_tokens_out_in_training_alone():
    encoder = static_encoder(dropout=0.25)
    with torch.no_grad():
        encoder.vectors_VD.fill_(1.0)
        encoder.weight_V.fill_(1.0)
    batch = batch_of_rows([[5]] * 4000)
    torch.manual_seed(0)
    h = encoder.train()(batch)
    assert h.unique().tolist() == pytest.approx([0, 1 / 0.75]), "a token is there or not, and what stays is scaled"
    assert (h[:, 0] == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert (encoder.eval()(batch) == 1).all()


def test_gradient_is_finite_where_all_tokens_were_left_out():
    encoder = static_encoder(dropout=0.9)
    torch.manual_seed(0)
    h = torch.nn.functional.normalize(encoder.train()(batch_of_rows([[5]] * 50 + [[]])), dim=1)
    (h * torch.randn_like(h)).sum().backward()
    assert (h.abs().sum(dim=1) == 0).any()
    assert torch.isfinite(encoder.vectors_VD.grad).all() and torch.isfinite(encoder.weight_V.grad).all()


def test_saved_and_loaded_it_is_the_same(tmp_path):
    encoder, texts = static_encoder(dropout=0.1), random_texts(2, 10)
    encoder.save(tmp_path / "deep" / "encoder", Settings())
    again = StaticEncoder.from_directory(tmp_path / "deep" / "encoder", dropout=0.3)
    assert again.token_dropout == 0.3
    assert torch.equal(again.eval()(batch_of(again, texts)), encoder.eval()(batch_of(encoder, texts)))


def test_the_embedded_table():
    encoder = load_encoder(EncoderSettings(dropout=0.2))
    assert encoder.dim == 256 and encoder.token_dropout == 0.2 and not encoder.add_special_tokens
    h = torch.nn.functional.normalize(encoder.eval()(batch_of(encoder, ["a sailing boat", "a ship", "tax law"])), dim=1)
    assert h[0] @ h[1] > h[0] @ h[2] + 0.1


@pytest.mark.parametrize("damage", ["missing", "truncated", "other tensors", "tokenizer"])
def test_a_damaged_directory(tmp_path, damage):
    static_encoder().save(tmp_path, Settings())
    vectors = tmp_path / "vectors.safetensors"
    if damage == "missing":
        vectors.unlink()
    elif damage == "truncated":
        vectors.write_bytes(vectors.read_bytes()[:100])
    elif damage == "other tensors":
        from safetensors.torch import save_file

        save_file({"x": torch.zeros(2)}, vectors)
    else:
        (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match=str(tmp_path)) as caught:
        StaticEncoder.from_directory(tmp_path)
    assert "\n" not in str(caught.value)


def test_threads_add_up_gradients_in_one_order():
    """With more tokens than torch gives to one thread; the same numbers again and again, to the last bit."""
    encoder, generator = static_encoder(), torch.Generator().manual_seed(0)
    vocabulary = len(encoder.weight_V)
    ids = torch.randint(0, vocabulary, (200_000,), generator=generator).numpy()
    batch = TokenBatch.from_arrays(ids, np.arange(0, 200_001, 10), torch.device("cpu"))
    up = torch.randn(20_000, encoder.dim, generator=generator)
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        gradients = []
        for _ in range(5):
            encoder.zero_grad()
            (encoder(batch) * up).sum().backward()
            gradients.append((encoder.weight_V.grad.clone(), encoder.vectors_VD.grad.clone()))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in gradients[1:] for a, b in zip(gradients[0], other, strict=True))
