"""export(): a model, or a part of it, in another program's form."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UserError, did_you_mean
from ..model.model import PrimeModel


def export(model: PrimeModel, to: str, place: str) -> str:
    """Writes `place` (a file, a directory, an address or a name, as the form wants it) and says what is there now."""
    if to not in FORMS:
        raise UserError(f'"{to}" is no form of export; there are {", ".join(FORMS)}.{did_you_mean(to, FORMS)}')
    if not place:
        raise UserError("where to? Name a place with --out.")
    return FORMS[to](model, place)


def _sentence_transformers(model: PrimeModel, place: str) -> str:
    from .sentence_transformers import export_sentence_transformers

    return export_sentence_transformers(model, place)


def _onnx(model: PrimeModel, place: str) -> str:
    from .onnx import export_onnx

    return export_onnx(model, place)


def _milvus(model: PrimeModel, place: str) -> str:
    from .milvus import export_milvus

    return export_milvus(model, place)


def _parquet(model: PrimeModel, place: str) -> str:
    from .parquet import export_parquet

    return export_parquet(model, place)


def _hub(model: PrimeModel, place: str) -> str:
    from .hub import upload

    return upload(model, place)


FORMS: dict[str, Callable[[PrimeModel, str], str]] = {
    "sentence-transformers": _sentence_transformers,
    "onnx": _onnx,
    "milvus": _milvus,
    "parquet": _parquet,
    "hub": _hub,
}
