"""Which parameters learn how fast, and which are pulled to zero."""

from __future__ import annotations

import pytest
import torch
from model.tiny import save_hugging_face, static_encoder

from primexmc.config import EncoderSettings, Settings
from primexmc.model.encoder import load_encoder
from primexmc.model.network import PrimeNetwork
from primexmc.training.optimiser import make_optimiser, set_learning_rates

VALUES = {
    "prototypes.num_free_vectors": 3,
    "prototypes.width": 8,
    "training.learning_rate": 0.5,
    "training.prototype_learning_rate": 0.25,
    "training.weight_decay": 0.125,
    "training.adam_eps": 1e-5,
}


def made(encoder, **values):
    settings = Settings().with_values(VALUES | values, "test")
    network = PrimeNetwork(encoder, settings.prototypes, torch.zeros(5, dtype=torch.int64))
    return network, make_optimiser(network, settings.training)


def expected(name, parameter):
    rate = 0.5 if name.startswith("encoder.") else 0.25
    free = name == "free_vectors_FD" or parameter.ndim < 2 or "norm" in name.lower() or "bias" in name
    return rate, 0.0 if free else 0.125


@pytest.mark.parametrize("kind", ["static", "bert", "distilbert", "modernbert"])
def test_rates_and_decay_of_every_parameter(kind, tmp_path):
    encoder = static_encoder()
    if kind != "static":
        encoder = load_encoder(EncoderSettings(name=str(save_hugging_face(tmp_path, kind))))
    network, optimiser = made(encoder)
    of = {id(p): group for group in optimiser.param_groups for p in group["params"]}
    assert sum(len(group["params"]) for group in optimiser.param_groups) == len(list(network.parameters()))
    for name, parameter in network.named_parameters():
        group = of[id(parameter)]
        assert (group["peak"], group["weight_decay"]) == expected(name, parameter), name
        assert group["eps"] == 1e-5
    decayed = [name for name, p in network.named_parameters() if of[id(p)]["weight_decay"]]
    assert any(name.startswith("encoder.") for name in decayed) and "label_prototypes.widen.weight" in decayed


@pytest.mark.parametrize("values", [{"prototypes.enabled": False}, {"prototypes.free_vector": False}])
def test_what_is_not_there_is_not_trained(values):
    network, optimiser = made(static_encoder(), **values)
    trained = {id(p) for group in optimiser.param_groups for p in group["params"]}
    assert id(network.free_vectors_FD) not in trained
    assert all(group["params"] for group in optimiser.param_groups)


def test_rates_follow_the_schedule_from_their_peaks():
    _, optimiser = made(static_encoder())
    for factor in (0.5, 0.1, 1.0):
        set_learning_rates(optimiser, factor)
        assert {group["lr"] for group in optimiser.param_groups} == {0.5 * factor, 0.25 * factor}
