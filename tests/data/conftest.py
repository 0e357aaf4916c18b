"""Small corpora on disk, and a tiny tokenizer."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "red",
    "green",
    "blue",
    "##ish",
    "query",
    ":",
    "a",
    "b",
    "c",
    "d",
    "e",
    ".",
]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """write("data/trn.csv", content): text as UTF-8, packed when the name ends in .gz."""

    def write_one(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path

    return write_one


@pytest.fixture
def tokenizer() -> Tokenizer:
    """WordPiece over a dozen words with [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordPiece({word: row for row, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer
