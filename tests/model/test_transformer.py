"""Hugging Face encoders: what comes out is what the plain library gives text by text, without padding."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from model.tiny import DIM, KINDS, batch_of, batch_of_rows, random_texts, save_hugging_face

from primexmc.config import EncoderSettings, Settings
from primexmc.model import transformer as module
from primexmc.model.attention_mask import attention_mask
from primexmc.model.encoder import load_encoder

TEXTS = ["", "boat", *random_texts(0, 12), "red boat " * 15]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return {kind: save_hugging_face(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def load(place, **settings):
    return load_encoder(EncoderSettings(name=str(place), **settings)).eval()


def plain(place, texts, pooling):
    """One text at a time through Hugging Face's own classes: no padding, no mask."""
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    rows = []
    for text in texts:
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
        rows.append(hidden[0] if pooling == "cls" else hidden.mean(dim=0))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("tokens_per_group", [30, 10_000])
def test_as_the_plain_library(saved, kind, pooling, tokens_per_group, monkeypatch):
    monkeypatch.setitem(module.TOKENS_PER_GROUP, "cpu", tokens_per_group)
    texts = [("query: " if kind == "e5" else "") + text for text in TEXTS]
    encoder = load(saved[kind], pooling=pooling)
    batch = batch_of(encoder, texts)
    num_groups = len(list(batch.groups_by_length(tokens_per_group, 99)))
    assert encoder.dim == DIM and (num_groups == 1) == (tokens_per_group == 10_000)
    with torch.no_grad():
        h = encoder(batch)
    assert h.dtype == torch.float32 and h.std(dim=0).mean() > 0.05, "texts differ"
    torch.testing.assert_close(h, plain(saved[kind], texts, pooling), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_tokens_are_finite(saved, kind):
    encoder = load(saved[kind])
    with torch.no_grad():
        for rows in ([], [[]], [[], [5, 6], []]):
            h = encoder(batch_of_rows(rows))
            assert h.shape == (len(rows), DIM) and torch.isfinite(h).all()
        torch.testing.assert_close(encoder(batch_of_rows([[], [5, 6]]))[1], encoder(batch_of_rows([[5, 6]]))[0])
    encoder.train()(batch_of_rows([[], [5, 6], []])).sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in encoder.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_trained(saved, kind):
    """BERT's pooler, say, would only be carried along."""
    encoder = load(saved[kind]).train()
    encoder(batch_of(encoder, TEXTS)).pow(2).sum().backward()
    assert [name for name, parameter in encoder.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_saved_and_loaded_it_is_the_same(saved, kind, pooling, tmp_path):
    encoder = load(saved[kind], pooling=pooling)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.01)
        encoder.save(tmp_path / "encoder", Settings())
        again = load(tmp_path / "encoder", pooling=pooling)
        assert torch.equal(again(batch_of(again, TEXTS)), encoder(batch_of(encoder, TEXTS)))
    assert again.tokenizer.to_str() == encoder.tokenizer.to_str()


@pytest.mark.parametrize("kind", ["bert", "distilbert", "mpnet", "modernbert"])
def test_dropout_is_the_encoders_own_or_the_settings(saved, kind):
    def spread(encoder):
        torch.manual_seed(0)
        with torch.no_grad():
            h = encoder.train()(batch_of(encoder, ["red boat"] * 30))
        return h.std(dim=0).mean().item()

    assert spread(load(saved[kind], dropout=0.0)) < 1e-6
    assert spread(load(saved[kind], dropout=0.5)) > 0.05
    config = load(saved[kind], dropout=0.25).transformer.config
    changed = [name for name, value in vars(config).items() if value == 0.25]
    assert changed and all("drop" in name for name in changed)
    own = load(saved[kind]).transformer.config
    assert [getattr(own, name) for name in changed] != [0.25] * len(changed)


def test_what_lies_in_a_saved_directory(saved, tmp_path):
    settings = Settings().with_values({"data.query_tokens": 24, "encoder.query_prefix": "query: "}, "test")
    load(saved["e5"], pooling="cls").save(tmp_path, settings)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "modules.json"} <= files
    pooling = json.loads((tmp_path / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    assert pooling["pooling_mode_cls_token"] and not pooling["pooling_mode_mean_tokens"]
    assert pooling["word_embedding_dimension"] == DIM and (tmp_path / "2_Normalize").is_dir()
    assert json.loads((tmp_path / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"] == 24
    prompts = json.loads((tmp_path / "config_sentence_transformers.json").read_text(encoding="utf-8"))
    assert prompts["prompts"]["query"] == "query: " and prompts["default_prompt_name"] == "query"
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pkl"))]


@pytest.mark.parametrize(("kind", "expected"), [("bert", 40), ("distilbert", 40), ("roberta", 40), ("mpnet", 40)])
def test_the_longest_text_that_it_can_read(saved, kind, expected):
    encoder = load(saved[kind])
    assert encoder.max_tokens == expected
    longest = [5] * expected
    with torch.no_grad():
        assert torch.isfinite(encoder(batch_of_rows([longest]))).all()
        with pytest.raises((IndexError, RuntimeError)):
            encoder(batch_of_rows([[*longest, 5]]))


def test_rotary_positions_have_no_end(saved):
    assert load(saved["modernbert"]).max_tokens is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_is_finished_where_the_model_takes_such(saved, kind):
    """On a GPU a plain mask makes the CPU wait in every group."""
    encoder = load(saved[kind])
    assert encoder.mask_kind == {"mpnet": "eager", "modernbert": "plain"}.get(kind, "sdpa")
    mask = torch.tensor([[True, True, False], [False, False, False]])
    made = attention_mask(mask, encoder.mask_kind)
    assert made.shape == ((2, 3) if kind == "modernbert" else (2, 1, 1, 3))
    kept = made == 0 if kind == "mpnet" else made.bool()
    assert kept.view(2, 3).tolist() == [[True, True, False], [True, False, False]]


def test_order_is_kept_for_many_texts(saved):
    encoder = load(saved["minilm"])
    texts = random_texts(3, 300, longest=25)
    order = np.random.default_rng(0).permutation(300)
    with torch.no_grad():
        h, shuffled = encoder(batch_of(encoder, texts)), encoder(batch_of(encoder, [texts[row] for row in order]))
    torch.testing.assert_close(shuffled, h[torch.from_numpy(order)], atol=1e-5, rtol=1e-5)
