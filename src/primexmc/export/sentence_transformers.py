"""The encoder as a directory for sentence-transformers: `SentenceTransformer(place).encode(texts)` gives what
`PrimeModel.encode` gives."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import Tokenizer

from ..atomic import replace_directory
from ..errors import UserError
from ..model.model import PrimeModel
from ..model.sentence_transformers import write_modules
from ..model.static import StaticEncoder


def export_sentence_transformers(model: PrimeModel, place: str) -> str:
    path = new_directory(place)
    with replace_directory(path) as directory:
        encoder = model.network.encoder
        if isinstance(encoder, StaticEncoder):
            _write_static(model, encoder, directory)
        else:
            encoder.save(directory, model.settings)
    return f"{path}: SentenceTransformer({str(path)!r}).encode(texts) gives what the model's encode gives."


def new_directory(place: str) -> Path:
    """Where a directory may be written: nothing is there, or nothing in it."""
    path = Path(place)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path}: something is there already; name a new or empty directory.")
    return path


def _write_static(model: PrimeModel, encoder: StaticEncoder, directory: Path) -> None:
    """The library knows no weights of tokens: they go into the table."""
    table_VD = (encoder.vectors_VD * encoder.weight_V[:, None]).detach().float().cpu().contiguous()
    save_file({"embedding.weight": table_VD}, directory / "model.safetensors")
    tokenizer: Tokenizer = Tokenizer.from_str(encoder.tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.settings.data.query_tokens)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "config.json").write_text(json.dumps({"model_type": "static", "hidden_size": encoder.dim}), "utf-8")
    write_modules(directory, (("", "StaticEmbedding"), ("1_Normalize", "Normalize")), model.settings)
