"""All that is learned in one module: which tokens take part, where gradient flows, how many free vectors there are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model.tiny import DIM, static_encoder

from primexmc.config import PrototypeSettings
from primexmc.model.centroids import Centroids
from primexmc.model.network import PrimeNetwork, num_free_vectors

NUM_LABELS = 9


def world(**settings):
    """A network, and centroids for all labels but the last two."""
    torch.manual_seed(0)
    chosen = PrototypeSettings(**({"num_free_vectors": 4, "width": 8, "dropout": 0.0} | settings))
    network = PrimeNetwork(static_encoder(), chosen, torch.arange(NUM_LABELS) % 4).eval()
    centroids = Centroids(torch.randn(NUM_LABELS, DIM), torch.arange(NUM_LABELS) < NUM_LABELS - 2)
    return network, centroids, torch.randn(NUM_LABELS, DIM)


def plain(network, h, centroids, with_c, with_v):
    c, v = centroids.c_LD, network.free_vectors_FD[network.free_vector_of_L]
    return torch.nn.functional.normalize(network.label_prototypes(h, c, v, with_c, with_v), dim=1)


def test_all_three_tokens_and_no_centroid_where_there_is_none():
    network, centroids, h = world()
    labels = torch.arange(NUM_LABELS)
    z = network.prototypes(h, labels, centroids)
    assert torch.allclose(z, plain(network, h, centroids, centroids.has_L, torch.ones(NUM_LABELS, dtype=torch.bool)))
    assert torch.allclose(z.norm(dim=1), torch.ones(NUM_LABELS))


def test_some_labels_in_any_order_are_as_in_all_of_them():
    network, centroids, h = world()
    some = torch.tensor([7, 0, 4])
    together = network.prototypes(h, torch.arange(NUM_LABELS), centroids)
    assert torch.allclose(network.prototypes(h[some], some, centroids), together[some], atol=1e-6)


@pytest.mark.parametrize(("centroid", "free_vector"), [(False, True), (True, False), (False, False)])
def test_tokens_can_be_switched_off(centroid, free_vector):
    network, centroids, h = world(centroid=centroid, free_vector=free_vector)
    nothing = torch.zeros(NUM_LABELS, dtype=torch.bool)
    if not free_vector:
        assert network.free_vectors_FD.shape == (0, DIM)
        network.free_vectors_FD = torch.nn.Parameter(torch.randn(4, DIM))  # to stand in for what is masked
    expected = plain(
        network, h, centroids, centroids.has_L if centroid else nothing, ~nothing if free_vector else nothing
    )
    assert torch.allclose(network.prototypes(h, torch.arange(NUM_LABELS), centroids), expected, atol=1e-6)


def test_text_alone_without_prototypes():
    network, centroids, h = world(enabled=False)
    assert network.label_prototypes is None and network.free_vectors_FD.numel() == 0
    z = network.prototypes(h, torch.arange(NUM_LABELS), centroids)
    assert torch.allclose(z, h / h.norm(dim=1, keepdim=True))


def test_gradient_flows_through_text_and_free_vector_and_not_through_the_centroid():
    network, centroids, h = world()
    h.requires_grad_()
    centroids.c_LD.requires_grad_(False)
    labels = torch.tensor([0, 1, 5])  # free vectors 0 and 1
    (network.prototypes(h[labels], labels, centroids) * torch.randn(3, DIM)).sum().backward()
    assert h.grad[labels].abs().min() > 0 and h.grad[2:5].abs().max() == 0
    used = network.free_vectors_FD.grad.abs().sum(dim=1) > 0
    assert used.tolist() == [True, True, False, False]
    assert centroids.c_LD.grad is None and "c_LD" not in dict(network.named_parameters())


def test_tokens_are_dropped_as_often_as_the_settings_say_and_in_training_alone():
    network, _, _ = world(drop_centroid=0.3, drop_free_vector=0.05)
    seen = []
    network.label_prototypes.forward = lambda h, c, v, has_c, has_v: seen.append((has_c, has_v)) or h
    size = 40_000
    labels, h = torch.randint(0, NUM_LABELS, (size,)), torch.randn(size, DIM)
    everywhere = Centroids(torch.randn(NUM_LABELS, DIM), torch.ones(NUM_LABELS, dtype=torch.bool))
    network.train().prototypes(h, labels, everywhere)
    network.eval().prototypes(h, labels, everywhere)
    (has_c, has_v), (eval_c, eval_v) = seen
    assert eval_c.all() and eval_v.all()
    for has, drop in ((has_c, 0.3), (has_v, 0.05)):
        assert (~has).float().mean().item() == pytest.approx(drop, abs=5 * np.sqrt(drop * (1 - drop) / size))
    both = (~has_c & ~has_v).float().mean().item()
    assert both == pytest.approx(0.3 * 0.05, abs=0.004), "one is dropped whatever happens to the other"


@pytest.mark.parametrize(
    ("settings", "num_labels", "expected"),
    [
        ({"num_free_vectors": 8}, 100, 8),
        ({"num_free_vectors": 8}, 5, 5),
        ({"num_free_vectors": 8, "free_vector": False}, 100, 0),
        ({"num_free_vectors": 8, "enabled": False}, 100, 0),
    ],
)
def test_number_of_free_vectors(settings, num_labels, expected):
    assert num_free_vectors(PrototypeSettings(**settings), num_labels) == expected


def test_free_vectors_begin_as_xavier_says():
    network, _, _ = world(num_free_vectors=NUM_LABELS)
    bound = np.sqrt(6 / (NUM_LABELS + DIM))
    largest = network.free_vectors_FD.abs().max().item()
    assert 0.9 * bound < largest <= bound and abs(network.free_vectors_FD.mean().item()) < 0.2 * bound
