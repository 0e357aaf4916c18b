"""A model on disk: JSON and safetensors only, and a directory that is either complete or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..atomic import replace_directory
from ..config import PrototypeSettings, Settings
from ..errors import UserError
from ..fusion.blend import Blend
from ..fusion.lexical import Lexical
from .calibration import Calibration, read_calibrations
from .card import MARK, card_text
from .centroids import Centroids
from .description import CLASSIFIER, DESCRIPTION, FORMAT_VERSION, TRAINING, read_description, refuse_other_directory
from .encoder import TextEncoder, load_encoder
from .hub import download, is_on_hub
from .index import keep_index
from .label_list import IdArray, read_labels, write_labels
from .memory import Memory
from .mixture import Mixture
from .model import PrimeModel
from .network import PrimeNetwork
from .tensor_file import write_tensors

CARD = "README.md"
MEMORY, LEXICAL = "memory.safetensors", "lexical.safetensors"
LABEL_TENSORS = {"prototypes", "centroids", "has_centroid"}


def save_model(model: PrimeModel, path: Path) -> None:
    """Writes beside `path`, then puts the whole directory in its place."""
    refuse_other_directory(path)
    with replace_directory(path, discard=(TRAINING, MEMORY, LEXICAL, CLASSIFIER)) as directory:
        model.network.encoder.save(directory / "encoder", model.settings)
        write_tensors(_network_tensors(model), directory / "network.safetensors")
        write_tensors(_label_tensors(model), directory / "prototypes.safetensors")
        if model.memory is not None:
            write_tensors(model.memory.tensors(), directory / MEMORY)
        if model.lexical is not None:
            write_tensors(model.lexical.tensors(), directory / LEXICAL)
        if model.classifier_LD is not None:
            write_tensors({"vectors": model.classifier_LD.detach().cpu().contiguous()}, directory / CLASSIFIER)
        write_labels(model.labels, model.label_counts_L, directory)
        keep_index(model, directory)
        description = {
            "format": "primexmc model",
            "format_version": FORMAT_VERSION,
            "num_labels": len(model.labels),
            "dim": model.prototypes_LD.shape[1],
            "num_train_queries": model.num_train_queries,
            "settings": model.settings.to_dict(),
            "facts": model.facts,
            "mixture": list(model.mixture),
            "blend": None if model.blend is None else model.blend.to_dict(),
            "calibrations": {mode: one.to_dict() for mode, one in model.calibrations.items()},
        }
        (directory / DESCRIPTION).write_text(json.dumps(description, indent=2, ensure_ascii=False), encoding="utf-8")
        if not _is_somebodys(path / CARD):
            (directory / CARD).write_text(card_text(model), encoding="utf-8")


def _is_somebodys(card: Path) -> bool:
    """A card that somebody has written, or made their own, stays."""
    return card.is_file() and MARK not in card.read_text(encoding="utf-8", errors="replace")


def load_model(path: Path, device: torch.device) -> PrimeModel:
    """Reads what `save_model` wrote, from a directory or from the hub."""
    if is_on_hub(path):
        path = download(path)
    description = read_description(path)
    settings = Settings.from_dict(description["settings"], str(path / DESCRIPTION))
    labels, label_counts_L = read_labels(path)
    encoder = load_encoder(settings.encoder, path / "encoder")
    network = _read_network(path / "network.safetensors", encoder, settings.prototypes)
    per_label = {name: value.to(device) for name, value in _read_tensors(path / "prototypes.safetensors").items()}
    if not per_label.keys() >= LABEL_TENSORS or any(len(value) != len(labels) for value in per_label.values()):
        raise UserError(
            f"{path}: labels.jsonl has {len(labels)} labels and prototypes.safetensors is not of these; "
            "train or copy the model again."
        )
    return PrimeModel(
        settings=settings,
        labels=labels,
        label_counts_L=label_counts_L,
        num_train_queries=description["num_train_queries"],
        network=network.to(device),
        prototypes_LD=per_label["prototypes"],
        centroids=_centroids(per_label, label_counts_L),
        memory=_read_memory(path / MEMORY, len(labels)),
        lexical=_read_lexical(path / LEXICAL, len(labels)),
        classifier_LD=_read_classifier(path / CLASSIFIER, per_label["prototypes"]),
        mixture=_read_mixture(description, path / DESCRIPTION),
        blend=_read_blend(description, path / DESCRIPTION),
        calibrations=_read_calibrations(description, path / DESCRIPTION),
        trained_L=per_label.get("trained"),
        facts=description["facts"],
    )


def _centroids(per_label: dict[str, Tensor], label_counts_L: IdArray) -> Centroids:
    """Models of before kept no counts of their own: the training queries' are nearly these."""
    has_L = per_label["has_centroid"]
    about_L = torch.from_numpy(label_counts_L).to(has_L.device).clamp(min=1) * has_L
    return Centroids(per_label["centroids"], per_label.get("centroid_counts", about_L))


def _read_network(file: Path, encoder: TextEncoder, settings: PrototypeSettings) -> PrimeNetwork:
    """All that is learned; the encoder has been read already."""
    tensors = _read_tensors(file)
    try:
        network = PrimeNetwork(encoder, settings, tensors["free_vector_of_L"], len(tensors["free_vectors_FD"]))
        missing = network.load_state_dict(tensors, strict=False)
        fits = not missing.unexpected_keys and all(name.startswith("encoder.") for name in missing.missing_keys)
    except (KeyError, RuntimeError):  # a tensor is not there, or of another shape
        fits = False
    if not fits:
        raise UserError(f"{file}: does not fit the settings in {DESCRIPTION}; train or copy the model again.")
    return network


def _read_memory(file: Path, num_labels: int) -> Memory | None:
    """None where a model was saved without."""
    if not file.exists():
        return None
    try:
        return Memory.from_tensors(_read_tensors(file), num_labels)
    except (KeyError, ValueError) as error:
        raise UserError(f"{file}: damaged ({error}); train or copy the model again.") from None


def _read_lexical(file: Path, num_labels: int) -> Lexical | None:
    """None where a model was saved without."""
    if not file.exists():
        return None
    try:
        lexical = Lexical.from_tensors(_read_tensors(file))
        if len(lexical.bias_L) != num_labels:
            raise ValueError(f"of {len(lexical.bias_L)} labels, expected {num_labels}")
    except (KeyError, ValueError) as error:
        raise UserError(f"{file}: damaged ({error}); train or copy the model again.") from None
    return lexical


def _read_classifier(file: Path, prototypes_LD: Tensor) -> Tensor | None:
    """None where a model was saved without; on the prototypes' device."""
    if not file.exists():
        return None
    vectors_LD = _read_tensors(file).get("vectors")
    if vectors_LD is None or vectors_LD.shape != prototypes_LD.shape:
        raise UserError(f"{file}: does not fit prototypes.safetensors; train or copy the model again.")
    return vectors_LD.to(prototypes_LD.device)


def _read_blend(description: dict[str, Any], file: Path) -> Blend | None:
    """None where the model has none, or is older than these."""
    try:
        stored = description.get("blend")
        return None if stored is None else Blend.from_dict(stored)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file}: its blend is damaged ({error}); train or copy the model again.") from None


def _read_mixture(description: dict[str, Any], file: Path) -> Mixture:
    try:
        return Mixture.from_list(description.get("mixture", ()))
    except (TypeError, ValueError) as error:
        raise UserError(f"{file}: its mixture is damaged ({error}); train or copy the model again.") from None


def _read_calibrations(description: dict[str, Any], file: Path) -> dict[str, Calibration]:
    """None where the model has none, or is older than these."""
    try:
        return read_calibrations(description)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: its calibration is damaged ({error}); train or copy the model again.") from None


def _network_tensors(model: PrimeModel) -> dict[str, Tensor]:
    """All but the encoder, which has a directory of its own."""
    state = model.network.state_dict()
    return {name: value.detach().cpu().contiguous() for name, value in state.items() if not name.startswith("encoder.")}


def _label_tensors(model: PrimeModel) -> dict[str, Tensor]:
    centroids = model.centroids
    tensors = {"prototypes": model.prototypes_LD, "centroids": centroids.c_LD, "has_centroid": centroids.has_L}
    tensors["centroid_counts"] = centroids.count_L.long()
    if model.trained_L is not None:
        tensors["trained"] = model.trained_L
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file}: missing or damaged ({error}); train or copy the model again.") from None
