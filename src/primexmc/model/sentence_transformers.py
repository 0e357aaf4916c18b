"""The files that make a saved encoder one that the library sentence-transformers loads, too.

`SentenceTransformer(directory).encode(texts)` then gives what `PrimeModel.encode` gives: the same cut, the same prefix,
the same pooling, length 1. The class names are the oldest ones, which all its versions know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config import Settings

MODULES = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))


def write_sentence_transformers_files(directory: Path, dim: int, pooling: str, settings: Settings) -> None:
    """Beside what the transformer and its tokenizer wrote."""
    write_modules(directory, MODULES, settings)
    _write(
        directory / "sentence_bert_config.json", {"max_seq_length": settings.data.query_tokens, "do_lower_case": False}
    )
    _write(
        directory / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": dim,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
        },
    )


def write_modules(directory: Path, names: Sequence[tuple[str, str]], settings: Settings) -> None:
    """Which modules follow each other, each with its directory, and what stands before queries and labels."""
    encoder = settings.encoder
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (path, name) in enumerate(names)
    ]
    prompts = {
        "prompts": {"query": encoder.query_prefix, "document": encoder.label_prefix},
        "default_prompt_name": "query" if encoder.query_prefix else None,
        "similarity_fn_name": "cosine",
    }
    _write(directory / "modules.json", modules)
    _write(directory / "config_sentence_transformers.json", prompts)
    _write(directory / names[-1][0] / "config.json", {})  # the last one makes the length 1 and has no settings


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
