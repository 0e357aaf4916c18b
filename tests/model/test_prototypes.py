"""The Label Prototype Network against a plain-loop transformer layer in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from primexmc.config import PrototypeSettings
from primexmc.errors import UserError
from primexmc.model.prototypes import LabelPrototypeNetwork, combiner

NUM_LABELS, DIM, WIDTH = 7, 12, 10


def network(heads=1, seed=0, dropout=0.0, normalise_text=False):
    torch.manual_seed(seed)
    settings = PrototypeSettings(heads=heads, width=WIDTH, dropout=dropout, normalise_text=normalise_text)
    made = LabelPrototypeNetwork(DIM, settings).double()
    with torch.no_grad():
        for parameter in made.parameters():  # no bias may be 0, no norm the identity
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def inputs(seed=0, centroid=None, free_vector=None):
    """h, c, v and which labels have c and v; by default all four cases occur."""
    rng = np.random.default_rng(seed)
    h, c, v = (torch.tensor(rng.normal(size=(NUM_LABELS, DIM))) for _ in range(3))
    has_c = torch.tensor([n % 2 == 0 for n in range(NUM_LABELS)] if centroid is None else [centroid] * NUM_LABELS)
    has_v = torch.tensor([n % 3 == 0 for n in range(NUM_LABELS)] if free_vector is None else [free_vector] * NUM_LABELS)
    return h, c, v, has_c, has_v


def numbers(parameter):
    return parameter.detach().double().numpy().tolist()


def linear(x, weight, bias):
    return [sum(w * value for w, value in zip(row, x, strict=True)) + b for row, b in zip(weight, bias, strict=True)]


def norm(x, weight, bias):
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    shares = [(value - mean) / math.sqrt(variance + 1e-5) for value in x]
    return [share * w + b for share, w, b in zip(shares, weight, bias, strict=True)]


def gelu(value):
    return value * 0.5 * (1 + math.erf(value / math.sqrt(2)))


def slow_prototype(net, tokens):
    """One post-norm layer over the tokens that there are; the mean of what comes out."""
    p = {name: numbers(parameter) for name, parameter in net.named_parameters()}
    size = DIM // net.heads
    projected = [linear(x, p["qkv.weight"], p["qkv.bias"]) for x in tokens]
    after = []
    for at, x in enumerate(tokens):
        attended = []
        for head in range(net.heads):
            places = range(head * size, (head + 1) * size)
            scores = []
            for other in range(len(tokens)):
                products = [projected[at][i] * projected[other][DIM + i] for i in places]
                scores.append(math.exp(sum(products) / math.sqrt(size)))
            for i in places:
                values = [projected[other][2 * DIM + i] for other in range(len(tokens))]
                attended.append(sum(s * value for s, value in zip(scores, values, strict=True)) / sum(scores))
        attended = linear(attended, p["out.weight"], p["out.bias"])
        y = [a + b for a, b in zip(x, attended, strict=True)]
        y = norm(y, p["norm_attention.weight"], p["norm_attention.bias"])
        wide = [gelu(value) for value in linear(y, p["widen.weight"], p["widen.bias"])]
        narrow = linear(wide, p["narrow.weight"], p["narrow.bias"])
        y = [a + b for a, b in zip(y, narrow, strict=True)]
        after.append(norm(y, p["norm_feed_forward.weight"], p["norm_feed_forward.bias"]))
    return [sum(y[i] for y in after) / len(after) for i in range(DIM)]


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_as_the_loops_say(heads, seed):
    net = network(heads, seed)
    h, c, v, has_c, has_v = inputs(seed)
    z = net(h, c, v, has_c, has_v)
    for label in range(NUM_LABELS):
        tokens = [h[label].tolist()]
        tokens += [c[label].tolist()] if has_c[label] else []
        tokens += [v[label].tolist()] if has_v[label] else []
        assert z[label].tolist() == pytest.approx(slow_prototype(net, tokens), abs=1e-9)


def test_text_of_length_one_where_the_settings_say_so():
    h, c, v, has_c, has_v = inputs()
    unit = h / h.norm(dim=1, keepdim=True)
    assert torch.allclose(
        network(normalise_text=True)(h, c, v, has_c, has_v), network()(unit, c, v, has_c, has_v), atol=1e-12
    )
    assert not torch.allclose(network()(h, c, v, has_c, has_v), network()(unit, c, v, has_c, has_v), atol=1e-3)


def test_the_order_of_the_tokens_does_not_matter():
    net = network(2)
    h, c, v, has_c, has_v = inputs(centroid=True, free_vector=True)
    expected = net(h, c, v, has_c, has_v)
    for a, b, d in [(h, v, c), (c, h, v), (v, c, h)]:
        assert torch.allclose(net(a, b, d, has_c, has_v), expected, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1e6])
def test_what_stands_in_a_missing_token_does_not_matter(value):
    net = network(2)
    h, c, v, has_c, has_v = inputs()
    expected = net(h, c, v, has_c, has_v)
    c, v = torch.where(has_c[:, None], c, value), torch.where(has_v[:, None], v, value)
    assert torch.allclose(net(h, c, v, has_c, has_v), expected, atol=1e-12)


def test_dropout_acts_in_training_alone():
    net, (h, c, v, has_c, has_v) = network(dropout=0.5), inputs()
    assert not torch.equal(net(h, c, v, has_c, has_v), net(h, c, v, has_c, has_v))
    net.eval()
    assert torch.equal(net(h, c, v, has_c, has_v), net(h, c, v, has_c, has_v))
    assert torch.allclose(net(h, c, v, has_c, has_v), network()(h, c, v, has_c, has_v))


def test_heads_must_divide_the_dimensions():
    with pytest.raises(UserError, match=r"prototypes\.heads \(5\)"):
        network(heads=5)


@pytest.mark.parametrize("normalise_text", [False, True])
def test_the_plain_sum(normalise_text):
    """DEXA's: text plus free vector, and the centroid where it is wanted; nothing is learned in it."""
    settings = PrototypeSettings(combine="sum", normalise_text=normalise_text)
    made, tokens = combiner(DIM, settings), inputs()
    assert not list(made.parameters())
    z = made(*tokens)
    for label, (h, c, v, has_c, has_v) in enumerate(zip(*(numbers(token) for token in tokens), strict=True)):
        length = math.sqrt(sum(x * x for x in h)) if normalise_text else 1.0
        expected = [x / length + (y if has_c else 0) + (w if has_v else 0) for x, y, w in zip(h, c, v, strict=True)]
        np.testing.assert_allclose(z[label].numpy(), expected, atol=1e-12)
