"""Shares of a score, against all orders in which tokens could come, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from model.tiny import DIM

from primexmc.config import PrototypeSettings
from primexmc.model.contributions import PARTS, Tokens, contributions
from primexmc.model.network import PrimeNetwork


class NoEncoder(torch.nn.Module):
    dim = DIM


def make_network(**values):
    torch.manual_seed(3)
    settings = PrototypeSettings(width=8, num_free_vectors=2, **values)
    network = PrimeNetwork(NoEncoder(), settings, torch.zeros(4, dtype=torch.int64))
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter)
    return network.eval()


def slow_score(h, tokens, subset, network):
    """The cosine, with nothing but the tokens of the subset in the network at all."""
    if not subset:
        return 0.0
    lpn = network.label_prototypes
    has = torch.tensor([[part in subset for part in range(3)]])
    z = (
        lpn.forward(tokens[:1], tokens[1:2], tokens[2:], has[:, 1], has[:, 2])
        if 0 in subset
        else lpn.mix(tokens[None] * has[..., None], has)
    )
    z = z[0].detach().double().numpy()
    return float(z @ h.double().numpy() / np.linalg.norm(z))


@pytest.mark.parametrize("there", [(True, True, True), (True, False, True), (True, True, False), (True, False, False)])
def test_the_mean_over_all_orders(there):
    network, h, tokens = make_network(), torch.nn.functional.normalize(torch.randn(DIM), dim=0), torch.randn(3, DIM)
    players = [part for part in range(3) if there[part]]
    gains = {part: [] for part in players}
    for order in itertools.permutations(players):
        for at, part in enumerate(order):
            before, after = set(order[:at]), set(order[: at + 1])
            gains[part].append(slow_score(h, tokens, after, network) - slow_score(h, tokens, before, network))
    found = contributions(h, Tokens(tokens, there), network)
    assert [one.part for one in found] == [PARTS[part] for part in players]
    for one, part in zip(found, players, strict=True):
        assert one.share == pytest.approx(np.mean(gains[part]), abs=1e-5)
        rest = set(players) - {part}
        without = slow_score(h, tokens, rest, network) if rest else None
        assert one.without == (None if without is None else pytest.approx(without, abs=1e-5))
    assert sum(one.share for one in found) == pytest.approx(slow_score(h, tokens, set(players), network), abs=1e-5)


def test_a_model_without_the_network_has_its_text_alone():
    network, h, tokens = (
        make_network(enabled=False),
        torch.nn.functional.normalize(torch.randn(DIM), dim=0),
        torch.randn(3, DIM),
    )
    (one,) = contributions(h, Tokens(tokens, (True, False, False)), network)
    assert one.part == "text" and one.without is None
    assert one.share == pytest.approx(float(torch.nn.functional.cosine_similarity(h, tokens[0], dim=0)), abs=1e-6)


def test_in_a_sum_each_token_is_one_summand():
    network = make_network(combine="sum")
    h, tokens = torch.nn.functional.normalize(torch.randn(DIM), dim=0), torch.randn(3, DIM)
    found = contributions(h, Tokens(tokens, (True, False, True)), network)
    text, free_vector, both = (
        float(torch.nn.functional.cosine_similarity(h, z, dim=0)) for z in (tokens[0], tokens[2], tokens[0] + tokens[2])
    )
    assert [one.part for one in found] == ["text", "free vector"]
    assert found[0].share == pytest.approx((text + both - free_vector) / 2, abs=1e-6)
    assert found[1].share == pytest.approx((free_vector + both - text) / 2, abs=1e-6)
    assert (found[0].without, found[1].without) == (pytest.approx(free_vector, abs=1e-6), pytest.approx(text, abs=1e-6))
