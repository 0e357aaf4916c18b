"""Reads an encoder as Hugging Face's libraries store them, or says in one sentence why it cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError, did_you_mean

EXPECTED = (
    'expected "static", a directory with config.json, tokenizer and weights, or the name of a model on the '
    "Hugging Face hub"
)
HUB_TIMEOUT_S = 10


def read_hugging_face(source: str, dropout: float) -> tuple[Any, Any]:
    """(transformer, tokenizer) from a directory or a hub name; `dropout` below 0 keeps the encoder's own."""
    path = Path(source).expanduser()
    if path.is_dir():
        with quiet():
            return _read(str(path), source, dropout, local_files_only=True)
    _refuse_what_is_no_name(source, path)
    return _read(source, source, dropout, local_files_only=not _hub_has(source))


@contextmanager
def quiet() -> Iterator[None]:
    """Reading or writing a directory takes a moment: no bars, and no table of the pooler that is left out."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _read(place: str, source: str, dropout: float, *, local_files_only: bool) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(place, local_files_only=local_files_only)
        _set_dropout(config, dropout)
        tokenizer = AutoTokenizer.from_pretrained(place, use_fast=True, local_files_only=local_files_only)
        transformer, report = AutoModel.from_pretrained(
            place,
            config=config,
            dtype=torch.float32,
            local_files_only=local_files_only,
            output_loading_info=True,
        )
    except Exception as error:  # whatever a library makes of somebody's files: the reason is passed on
        reason = "its weights do not fit its config.json" if "mismatched_sizes" in str(error) else _first_line(error)
        raise _unusable(source, reason) from error
    transformer = _without_pooler(transformer)
    _check(source, transformer, tokenizer, report)
    return transformer, tokenizer


def _check(source: str, transformer: Any, tokenizer: Any, report: Any) -> None:
    """What the libraries let pass with a warning, or not at all, and what would make nonsense here."""
    missing = [name for name in report["missing_keys"] if not name.startswith("pooler.")]
    if missing:
        raise _unusable(source, f"its weights lack {len(missing)} tensors, among them {sorted(missing)[0]}")
    if getattr(transformer.config, "is_encoder_decoder", False):
        raise _unusable(source, "it is an encoder with a decoder")
    if not isinstance(getattr(transformer.config, "hidden_size", None), int):
        raise _unusable(source, "it is no encoder of texts")
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise _unusable(source, "its tokenizer has no tokenizer.json")
    vocabulary = tokenizer.get_vocab()
    if len(vocabulary) <= len(tokenizer.all_special_tokens):
        raise _unusable(source, "it has no tokenizer")
    rows = transformer.get_input_embeddings().weight.shape[0]
    if max(vocabulary.values()) >= rows:
        raise _unusable(source, f"its tokenizer has ids up to {max(vocabulary.values())}, its weights {rows} tokens")


def _refuse_what_is_no_name(source: str, path: Path) -> None:
    """Hub names are `name` or `owner/name`; all else is meant as a path."""
    if path.is_file():
        raise UserError(f'encoder.name "{source}": a file; {EXPECTED}.')
    if source.startswith(("/", ".", "~")) or source.count("/") > 1 or not source.strip():
        raise UserError(f'encoder.name "{source}": no such directory; {EXPECTED}.')


def _hub_has(name: str) -> bool:
    """One short question, for the libraries ask many times before they give up. False: what is in the cache must do."""
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        return True
    except HFValidationError:
        raise UserError(f'encoder.name "{name}": neither a directory nor a name; {EXPECTED}.') from None
    except Exception as error:  # no connection, no answer in time, no such model: each library has its own
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return False
        if isinstance(error, RepositoryNotFoundError):
            reason = "neither a directory here nor a model on the Hugging Face hub"
        else:
            reason = f"no directory here, and the Hugging Face hub cannot be reached ({_first_line(error)})"
        raise UserError(f'encoder.name "{name}": {reason}; {EXPECTED}.{did_you_mean(name, ["static"])}') from error


def _unusable(source: str, reason: str) -> UserError:
    return UserError(f'encoder "{source}" cannot be used: {reason.rstrip(".")}; {EXPECTED}.')


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _without_pooler(transformer: Any) -> Any:
    """BERT's pooler is never used here; left in, it would be trained on nothing and saved."""
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler = None
    return transformer


def _set_dropout(config: Any, dropout: float) -> None:
    if dropout < 0:
        return
    for name in vars(config):
        if name.endswith(("dropout", "dropout_prob")) and isinstance(getattr(config, name), float):
            setattr(config, name, dropout)
