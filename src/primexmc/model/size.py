"""How large an encoder is, from its description alone: nothing is loaded.

Shapes: D dimensions, H hidden, I inner width of a layer's feed-forward part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATIC_TOKENS, STATIC_DIM = 30_522, 256
# From their own config.json files: where they are not on this machine, their presets can still be told about.
KNOWN: dict[str, dict[str, Any]] = {
    "sentence-transformers/all-MiniLM-L6-v2": {
        "model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536,
        "num_attention_heads": 12, "vocab_size": 30_522, "max_position_embeddings": 512,
    },
    "sentence-transformers/msmarco-distilbert-base-v4": {
        "model_type": "distilbert", "dim": 768, "n_layers": 6, "hidden_dim": 3072,
        "n_heads": 12, "vocab_size": 30_522, "max_position_embeddings": 512,
    },
}  # fmt: skip


@dataclass(frozen=True)
class EncoderSize:
    """`num_layers` is 0 for the static encoder."""

    num_parameters: int
    dim: int
    num_layers: int = 0
    inner: int = 0
    heads: int = 0


def encoder_size(name: str) -> EncoderSize | None:
    """Of "static", a directory, a name in the Hugging Face cache, or a known name; None where nothing is known."""
    if name == "static":
        return EncoderSize(STATIC_TOKENS * (STATIC_DIM + 1), STATIC_DIM)
    config = _config(name)
    try:
        return None if config is None else _transformer_size(config)
    except (KeyError, TypeError, ValueError):
        return None


def _config(name: str) -> dict[str, Any] | None:
    file = Path(name).expanduser() / "config.json"
    if not file.is_file():
        file = _cached(name) or file
    try:
        config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return config
    except (OSError, ValueError):
        return KNOWN.get(name)


def _cached(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(name, "config.json")
    except ValueError:  # no name for the hub
        return None
    return Path(found) if isinstance(found, str) else None


def _transformer_size(config: dict[str, Any]) -> EncoderSize:
    """Embeddings, and for each layer four H x H matrices and the feed-forward part, with biases and norms."""
    H = _first(config, "hidden_size", "dim")
    layers = _first(config, "num_hidden_layers", "n_layers")
    inner = _first(config, "intermediate_size", "hidden_dim")
    gated = config.get("model_type") == "modernbert"
    rows = config["vocab_size"] + (0 if gated else config.get("max_position_embeddings", 0))
    layer = 4 * H * H + (3 * H * inner + 2 * H if gated else 2 * H * inner + 9 * H + inner)
    return EncoderSize(rows * H + layers * layer, H, layers, inner, _first(config, "num_attention_heads", "n_heads"))


def _first(config: dict[str, Any], name: str, other_name: str) -> int:
    return int(config[name] if name in config else config[other_name])
