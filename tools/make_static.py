"""Builds the static encoder's table from a sentence encoder with a WordPiece vocabulary: always the same bytes.

    python tools/make_static.py MODEL_DIRECTORY [OUT]

MODEL_DIRECTORY holds sentence-transformers/all-MiniLM-L6-v2; OUT defaults to src/primexmc/model/static_table.

1. Every token goes through the model alone, as [CLS] token [SEP]; its vector is the last layer's output at its place.
2. Principal components: the mean is taken out, the first 256 directions stay, each divided by the square
   root of its spread, so that the few loud ones do not drown the rest. Special tokens become zero.
3. Weights: a / (a + p), p from the token's place in the vocabulary, which is roughly sorted by frequency (Zipf's law).
4. All vectors are scaled together, then each is rounded to 8 bits with a 16-bit scale of its own.

In float64 throughout, so that another machine's order of additions does not change a byte.
Shapes: V tokens, H the model's dimensions, D the table's.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save
from transformers import AutoModel

Array = NDArray[np.float64]

DEFAULT_OUT = Path(__file__).parents[1] / "src" / "primexmc" / "model" / "static_table"
DIMENSIONS = 256
ENTRY_SIZE = 0.05  # root mean square of a vector's entries: Adam's step is in this unit
SMOOTHING = 1e-3  # a: tokens rarer than this share of a text keep their weight
FIRST_WORD = 1996  # before it: special tokens and single characters; from there on words and pieces by frequency
CHARACTER_RANK = 30  # punctuation, digits and single ASCII letters are about as frequent as the 30th word
RARE_RANK = 30_000


def main(arguments: list[str]) -> None:
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    directory, out = Path(arguments[0]), Path(arguments[1]) if len(arguments) == 2 else DEFAULT_OUT
    tokenizer = plain_tokenizer(json.loads((directory / "tokenizer.json").read_text(encoding="utf-8")))
    vocabulary = tokenizer["model"]["vocab"]
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    special_V = np.array([token.startswith("[") and token.endswith("]") and len(token) > 2 for token in tokens])
    vectors_VD = principal_components(token_outputs(directory, tokens), ~special_V)
    tensors = {**quantised(vectors_VD), "weight": zipf_weights(tokens).astype(np.float16)}
    out.mkdir(parents=True, exist_ok=True)
    (out / "vectors.safetensors").write_bytes(save(tensors))
    compact = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (out / "tokenizer.json").write_text(compact + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {len(tokens)} tokens, {DIMENSIONS} dimensions, {size / 1e6:.1f} MB")


def plain_tokenizer(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """The same word pieces, but nothing is added, cut or padded, and no text is special."""
    return {**tokenizer, "truncation": None, "padding": None, "post_processor": None, "added_tokens": []}


def token_outputs(directory: Path, tokens: list[str], chunk: int = 1024) -> Array:
    """What the model says at each token's own place when it stands alone, V x H."""
    model = AutoModel.from_pretrained(directory, dtype=torch.float64).eval()
    start, end = tokens.index("[CLS]"), tokens.index("[SEP]")
    outputs = []
    with torch.inference_mode():
        for ids in torch.split(torch.arange(len(tokens)), chunk):
            rows = torch.stack([torch.full_like(ids, start), ids, torch.full_like(ids, end)], dim=1)
            hidden = model(input_ids=rows, attention_mask=torch.ones_like(rows)).last_hidden_state
            outputs.append(hidden[:, 1].numpy())
    return np.concatenate(outputs)


def principal_components(outputs_VH: Array, counted_V: NDArray[np.bool_]) -> Array:
    """Centred on the counted tokens, turned onto their main directions, evened out; the other tokens are zero."""
    centred_VH = np.where(counted_V[:, None], outputs_VH - outputs_VH[counted_V].mean(axis=0), 0.0)
    variance_H, directions_HH = np.linalg.eigh(centred_VH.T @ centred_VH)
    largest_HD = directions_HH[:, ::-1][:, :DIMENSIONS]
    peaks_D = largest_HD[np.abs(largest_HD).argmax(axis=0), np.arange(DIMENSIONS)]
    spread_D = np.sqrt(variance_H[::-1][:DIMENSIONS])
    vectors_VD = centred_VH @ (largest_HD * np.sign(peaks_D) / np.sqrt(spread_D))  # a direction's own sign is arbitrary
    scaled: Array = vectors_VD * (ENTRY_SIZE / np.sqrt((vectors_VD[counted_V] ** 2).mean()))
    return scaled


def quantised(vectors_VD: Array) -> dict[str, NDArray[np.generic]]:
    """8-bit codes and the scale of each row: vector = code * scale."""
    scale_V = (np.abs(vectors_VD).max(axis=1) / 127).astype(np.float16)
    divisor_V = np.where(scale_V > 0, scale_V.astype(np.float64), 1.0)
    codes_VD = np.clip(np.rint(vectors_VD / divisor_V[:, None]), -127, 127).astype(np.int8)
    return {"vectors": codes_VD, "scale": scale_V}


def zipf_weights(tokens: list[str]) -> Array:
    """Frequent tokens say little: a / (a + p) with p = 1 / (rank ln V), scaled to a mean of 1."""
    rank_V = np.maximum(np.arange(len(tokens)) - FIRST_WORD + 1, 1).astype(np.float64)
    rank_V[:FIRST_WORD] = RARE_RANK
    rank_V[[len(token) == 1 and token.isascii() for token in tokens]] = CHARACTER_RANK
    share_V = 1 / (rank_V * math.log(len(tokens)))
    weight_V: Array = SMOOTHING / (SMOOTHING + share_V)
    normalised_V: Array = weight_V / weight_V.mean()
    return normalised_V


if __name__ == "__main__":
    main(sys.argv[1:])
