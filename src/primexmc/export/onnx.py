"""The encoder as ONNX, with pooling and normalisation inside, checked against torch.

Shapes: B texts, S positions of a padded rectangle, V tokens in the vocabulary, D dimensions.
"""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from ..atomic import replace_directory
from ..errors import UserError
from ..model.model import PrimeModel
from ..model.static import StaticEncoder
from ..model.transformer import TransformerEncoder
from .sentence_transformers import new_directory

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
LARGEST_DIFFERENCE = 1e-3  # in any coordinate of a vector of length 1; fp32 against fp32 is a thousand times nearer
CHECKED_TEXTS = 32


def export_onnx(model: PrimeModel, place: str) -> str:
    """A directory with model.onnx (input_ids and attention_mask, B x S, to sentence_embedding, B x D), tokenizer.json
    that cuts and pads, and primexmc_encoder.json with the prefix of queries."""
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError('ONNX needs its packages: pip install "primexmc[onnx]".') from None
    path, settings = new_directory(place), model.settings
    with replace_directory(path) as directory:
        tokenizer = _tokenizer(model)
        tokenizer.save(str(directory / "tokenizer.json"))
        about = {"query_prefix": settings.encoder.query_prefix, "max_tokens": settings.data.query_tokens}
        (directory / "primexmc_encoder.json").write_text(json.dumps(about, indent=2, ensure_ascii=False), "utf-8")
        _write(model, tokenizer, directory / "model.onnx")
        difference = _difference(model, directory)
        if not difference <= LARGEST_DIFFERENCE:
            raise UserError(f"the ONNX model differs from torch by {difference:.1g}; this encoder cannot be exported.")
    return f"{path}: model.onnx and tokenizer.json; vectors differ from torch by at most {difference:.1g}."


class _StaticSentences(nn.Module):
    def __init__(self, encoder: StaticEncoder) -> None:
        super().__init__()
        self.table_VD = nn.Parameter((encoder.vectors_VD * encoder.weight_V[:, None]).detach())

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask_BS1 = attention_mask[:, :, None].float()
        sum_BD = (functional.embedding(input_ids, self.table_VD) * mask_BS1).sum(1)
        return _unit(sum_BD / mask_BS1.sum(1).clamp(min=1))


class _Sentences(nn.Module):
    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        self.transformer, self.pool = encoder.transformer, encoder.pool

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden_BSD = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return _unit(self.pool(hidden_BSD, attention_mask.bool()))


def _unit(h_BD: Tensor) -> Tensor:
    """Of length 1; what has no length stays as it is."""
    length_B1: Tensor = h_BD.norm(dim=1, keepdim=True)
    return h_BD / length_B1.clamp(min=1e-12)


def _write(model: PrimeModel, tokenizer: Tokenizer, file: Path) -> None:
    encoder = model.network.encoder
    if isinstance(encoder, StaticEncoder):
        sentences: nn.Module = _StaticSentences(encoder)
    elif isinstance(encoder, TransformerEncoder):
        sentences = _Sentences(encoder)
    else:
        raise UserError(f"an encoder of the kind {type(encoder).__name__} cannot be exported to ONNX.")
    ids_BS, mask_BS = _padded(tokenizer, ["two texts of", "some more words than the other"])
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=model.settings.data.query_tokens)}
    with _quiet():
        torch.onnx.export(
            sentences.cpu().eval(),
            (torch.from_numpy(ids_BS), torch.from_numpy(mask_BS)),
            str(file),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_shapes=dict.fromkeys(INPUTS, axes),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def _tokenizer(model: PrimeModel) -> Tokenizer:
    """Cuts as the model does, and pads to the longest of a batch."""
    encoder = model.network.encoder
    tokenizer: Tokenizer = Tokenizer.from_str(encoder.tokenizer.to_str())
    tokenizer.enable_truncation(model.settings.data.query_tokens)
    pad_id = int(getattr(encoder, "pad_id", 0))
    tokenizer.enable_padding(pad_id=pad_id, pad_token=tokenizer.id_to_token(pad_id) or "[PAD]")
    if not encoder.add_special_tokens:
        tokenizer.post_processor = None
    return tokenizer


def _padded(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Any, Any]:
    encodings = tokenizer.encode_batch(list(texts))
    ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64).reshape(len(texts), -1)
    return ids, np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64).reshape(ids.shape)


def _difference(model: PrimeModel, directory: Path) -> float:
    """The largest, in any coordinate, over texts of the labels: one by one, and in one batch."""
    from onnxruntime import InferenceSession

    session = InferenceSession(str(directory / "model.onnx"), providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    texts = [*model.labels.texts[:CHECKED_TEXTS], "x", " ".join(model.labels.texts[:CHECKED_TEXTS])]
    texts = [text for text in texts if text.strip()]
    prefix, largest = model.settings.encoder.query_prefix, 0.0
    for batch in (texts, *([text] for text in texts[:4])):
        ids_BS, mask_BS = _padded(tokenizer, [prefix + text for text in batch])
        [found] = session.run([OUTPUT], {INPUTS[0]: ids_BS, INPUTS[1]: mask_BS})
        largest = max(largest, float(np.abs(found - model.encode(batch)).max()))
    return largest


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells programmers a lot."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
