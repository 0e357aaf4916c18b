"""AdamW with one learning rate for the encoder and one for the prototypes; no decay on biases, norms, free vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..config import TrainingSettings
from ..model.network import PrimeNetwork


def make_optimiser(network: PrimeNetwork, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Each group remembers its peak learning rate as "peak"; the loop sets "lr" from it at every step."""
    encoder = list(network.encoder.parameters())
    prototypes = [] if network.label_prototypes is None else list(network.label_prototypes.parameters())
    free_vectors = [network.free_vectors_FD] if network.free_vectors_FD.requires_grad else []
    groups = [
        _group(_matrices(encoder), settings.learning_rate, settings.weight_decay),
        _group(_vectors(encoder), settings.learning_rate, 0.0),
        _group(_matrices(prototypes), settings.prototype_learning_rate, settings.weight_decay),
        _group(_vectors(prototypes), settings.prototype_learning_rate, 0.0),
        _group(free_vectors, settings.prototype_learning_rate, 0.0),
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], eps=settings.adam_eps, fused=True)


def set_learning_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * factor


def _group(parameters: list[nn.Parameter], peak: float, weight_decay: float) -> dict[str, Any]:
    return {"params": parameters, "lr": peak, "peak": peak, "weight_decay": weight_decay}


def _matrices(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    return [parameter for parameter in parameters if parameter.requires_grad and parameter.ndim > 1]


def _vectors(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    """Biases, norms, and the weights of static tokens."""
    return [parameter for parameter in parameters if parameter.requires_grad and parameter.ndim <= 1]
