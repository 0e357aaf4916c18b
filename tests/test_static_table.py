"""The embedded table is what its README.txt says, and its vectors mean something."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import primexmc

TABLE = Path(primexmc.__file__).parent / "model" / "static_table"
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def stored() -> dict[str, NDArray[np.generic]]:
    return load_file(TABLE / "vectors.safetensors")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TABLE / "tokenizer.json"))


@pytest.fixture(scope="module")
def vectors_VD(stored: dict[str, NDArray[np.generic]]) -> Array:
    return stored["vectors"].astype(np.float64) * stored["scale"].astype(np.float64)[:, None]


def test_size_shapes_and_types(stored: dict[str, NDArray[np.generic]], tokenizer: Tokenizer) -> None:
    assert sum(path.stat().st_size for path in TABLE.iterdir()) <= 10_000_000
    num_tokens = tokenizer.get_vocab_size()
    assert stored["vectors"].shape == (num_tokens, 256)
    assert stored["vectors"].dtype == np.int8
    assert stored["scale"].shape == stored["weight"].shape == (num_tokens,)
    assert stored["scale"].dtype == stored["weight"].dtype == np.float16


def test_origin_and_licence_lie_beside_it() -> None:
    readme = (TABLE / "README.txt").read_text(encoding="utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in readme
    assert "Apache License" in (TABLE / "LICENSE").read_text(encoding="utf-8")
    assert hashlib.sha256((TABLE / "vectors.safetensors").read_bytes()).hexdigest() in readme


def test_values_use_the_whole_range_and_are_finite(stored: dict[str, NDArray[np.generic]], vectors_VD: Array) -> None:
    codes_VD = stored["vectors"].astype(np.int64)
    used_V = stored["scale"] > 0
    assert used_V.mean() > 0.9  # all but the unused tokens
    assert (np.abs(codes_VD[used_V]).max(axis=1) == 127).mean() > 0.99
    assert codes_VD.min() >= -127
    assert np.isfinite(vectors_VD).all()
    assert np.isfinite(stored["weight"].astype(np.float64)).all()
    assert np.sqrt((vectors_VD[used_V] ** 2).mean()) == pytest.approx(0.05, rel=0.02)


def test_special_tokens_say_nothing(tokenizer: Tokenizer, vectors_VD: Array) -> None:
    for token in ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[unused5]"):
        assert not vectors_VD[tokenizer.token_to_id(token)].any()


def test_frequent_tokens_weigh_less(tokenizer: Tokenizer, stored: dict[str, NDArray[np.generic]]) -> None:
    weight_V = stored["weight"].astype(np.float64)
    assert weight_V.mean() == pytest.approx(1, abs=1e-3)
    assert weight_V.min() > 0
    weights = [float(weight_V[tokenizer.token_to_id(token)]) for token in ("the", ",", "house", "sculptor")]
    assert weights == sorted(set(weights))


def test_tokenizer_lowers_and_adds_nothing(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("The HOUSE, Café").tokens == ["the", "house", ",", "cafe"]
    assert tokenizer.encode("").ids == []
    assert len(tokenizer.encode("word " * 1000).ids) == 1000
    assert tokenizer.encode("[CLS]").tokens == ["[", "cl", "##s", "]"]
    assert [len(e.ids) for e in tokenizer.encode_batch(["a", "a b c"])] == [1, 3]
    assert json.loads((TABLE / "tokenizer.json").read_text(encoding="utf-8"))["post_processor"] is None


def test_near_words_are_near(tokenizer: Tokenizer, vectors_VD: Array) -> None:
    def cosine(first: str, second: str) -> float:
        a, b = vectors_VD[tokenizer.token_to_id(first)], vectors_VD[tokenizer.token_to_id(second)]
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    for near, far in (("boat", "theology"), ("cat", "tax"), ("piano", "copper")):
        related = {"boat": "ship", "cat": "dog", "piano": "violin"}[near]
        assert cosine(near, related) > 0.3 > cosine(near, far)
