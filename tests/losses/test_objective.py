"""The objective: three relations and R, put together by slow loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.cases import dense, positives
from losses.oracle import contrastive, decoupled_softmax, dynamic_margin, regulariser

from primexmc.config import LossSettings
from primexmc.errors import UserError
from primexmc.losses import Objective, Positives


def vectors(rng, num):
    rows = rng.normal(size=(num, 5))
    return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True), requires_grad=True)


def case(seed, *, num_queries=7, num_labels=11):
    """At most one positive a row and a column, so that no draw is left to chance."""
    rng = np.random.default_rng(seed)
    true = positives(rng, num_queries, num_labels, several=False)
    for column in range(num_labels):
        true[true[:, column].nonzero()[1:, 0], column] = 0
    q, labels, z = vectors(rng, num_queries), vectors(rng, num_labels), vectors(rng, num_labels)
    return q, labels, z, true


def by_hand(q, labels, z, true, settings):
    """Loss, its terms, and its gradients by q, labels and z."""
    s_text, s_proto = q @ labels.T, q @ z.T
    first, turned = [row.index(1) if 1 in row else 0 for row in true.tolist()], true.T.tolist()
    first_turned = [row.index(1) if 1 in row else 0 for row in turned]
    if settings.name == "margin":
        options = {"k": settings.num_negatives, "tau": settings.softmax_tau or None, "tie": settings.tie_gradient}
        relations = {
            "prototype": dynamic_margin(s_proto.tolist(), true.tolist(), first, **options),
            "text": dynamic_margin(s_text.tolist(), true.tolist(), first, **options),
            "reverse": dynamic_margin(s_text.T.tolist(), turned, first_turned, **options),
        }
    elif settings.name == "contrastive":
        options = {"temperature": settings.temperature}
        relations = {
            "prototype": contrastive(s_proto.tolist(), true.tolist(), first, **options),
            "text": contrastive(s_text.tolist(), true.tolist(), first, **options),
            "reverse": contrastive(s_text.T.tolist(), turned, first_turned, **options),
        }
    else:
        relations = {
            "prototype": decoupled_softmax(s_proto.tolist(), true.tolist(), temperature=settings.temperature),
            "text": decoupled_softmax(s_text.tolist(), true.tolist(), temperature=settings.temperature),
            "reverse": decoupled_softmax(s_text.T.tolist(), turned, temperature=settings.temperature),
        }
    terms = {name: relation[0] for name, relation in relations.items()}
    by_proto = settings.prototype_weight * dense(relations["prototype"][1], s_proto.shape)
    by_text = settings.text_weight * dense(relations["text"][1], s_text.shape)
    by_text = by_text + settings.reverse_weight * dense(relations["reverse"][1], s_text.T.shape).T
    if settings.name == "margin":
        terms["regulariser"], r_text, r_proto = regulariser(
            s_text.tolist(),
            s_proto.tolist(),
            true.tolist(),
            first,
            margin=settings.regulariser_margin,
            k=settings.num_negatives,
        )
        by_text = by_text + settings.regulariser_weight * dense(r_text, s_text.shape)
        by_proto = by_proto + settings.regulariser_weight * dense(r_proto, s_proto.shape)
    weights = {name: getattr(settings, f"{name}_weight") for name in terms}
    loss = sum(weights[name] * value for name, value in terms.items())
    q, labels, z = (x.detach().numpy() for x in (q, labels, z))
    return loss, terms, (by_text @ labels + by_proto @ z, by_text.T @ q, by_proto.T @ q)


@pytest.mark.parametrize(
    "settings",
    [
        LossSettings(),
        LossSettings(softmax_tau=0.0, num_negatives=3),
        LossSettings(prototype_weight=0.5, text_weight=2.0, reverse_weight=0.25, regulariser_weight=3.0),
        LossSettings(name="softmax"),
        LossSettings(name="softmax", prototype_weight=0.3, temperature=0.5),
        LossSettings(name="contrastive", reverse_weight=2.0, temperature=0.2),
    ],
    ids=["margin", "mean", "weights", "softmax", "softmax-weights", "contrastive"],
)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradients_by_the_oracle(settings, seed):
    q, labels, z, true = case(seed)
    built = Positives.from_mask(true)
    loss, stats = Objective(settings, prototypes=True)(q, labels, z, built, built.transposed())
    gradients = torch.autograd.grad(loss, (q, labels, z))
    value, terms, expected = by_hand(q, labels, z, true, settings)
    assert loss.item() == pytest.approx(value, abs=1e-10)
    assert set(stats) == {"loss", "violators", *terms}
    for name, term in terms.items():
        assert stats[name].item() == pytest.approx(term, abs=1e-10)
    for gradient, by_loops in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient.numpy(), by_loops, atol=1e-9)


def test_stats_are_detached_and_count_violators():
    q, labels, z, true = case(1)
    built = Positives.from_mask(true)
    _, stats = Objective(LossSettings(num_negatives=4), prototypes=True)(q, labels, z, built, built.transposed())
    first = [row.index(1) if 1 in row else 0 for row in true.tolist()]
    *_, violators = dynamic_margin((q @ z.T).tolist(), true.tolist(), first, k=4)
    rows = sum(1 in row for row in true.tolist())
    assert stats["violators"].item() == pytest.approx(violators / (4 * rows))
    assert not any(value.requires_grad for value in stats.values())


@pytest.mark.parametrize("name", ["margin", "softmax"])
def test_without_prototypes_only_texts_meet(name):
    q, labels, z, true = case(0)
    built = Positives.from_mask(true)
    settings = LossSettings(name=name)
    loss, stats = Objective(settings, prototypes=False)(q, labels, None, built, built.transposed())
    _, terms, _ = by_hand(q, labels, z, true, settings)
    assert set(stats) == {"loss", "violators", "text", "reverse"}
    assert loss.item() == pytest.approx(terms["text"] + terms["reverse"], abs=1e-10)


def test_what_weighs_nothing_is_left_out():
    q, labels, z, true = case(0)
    built = Positives.from_mask(true)
    settings = LossSettings(text_weight=0.0, reverse_weight=0.0, regulariser_weight=0.0)
    loss, stats = Objective(settings, prototypes=True)(q, labels, z, built, built.transposed())
    assert set(stats) == {"loss", "violators", "prototype"}
    assert loss.item() == stats["prototype"].item()


def test_several_positives_are_drawn_by_the_generator():
    rng = np.random.default_rng(8)
    q, labels, z = vectors(rng, 20), vectors(rng, 15), vectors(rng, 15)
    built = Positives.from_mask(positives(rng, 20, 15))
    objective = Objective(LossSettings(), prototypes=True)

    def loss(seed):
        generator = torch.Generator().manual_seed(seed)
        return objective(q, labels, z, built, built.transposed(), generator)[0].item()

    assert loss(0) == loss(0)
    assert len({loss(seed) for seed in range(5)}) > 1


def test_bf16_vectors_are_compared_in_float32():
    q, labels, z, true = case(2)
    built = Positives.from_mask(true)
    low = [x.detach().bfloat16().requires_grad_() for x in (q, labels, z)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = Objective(LossSettings(), prototypes=True)(*low, built, built.transposed())
    loss.backward()
    value, _, _ = by_hand(*(x.detach().double() for x in low), true, LossSettings())
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(value, rel=1e-4)


def test_prototypes_are_given_exactly_when_expected():
    q, labels, z, true = case(0)
    built = Positives.from_mask(true)
    for prototypes, given in ((True, None), (False, z)):
        with pytest.raises(ValueError, match="prototypes"):
            Objective(LossSettings(), prototypes=prototypes)(q, labels, given, built, built.transposed())


def test_some_relation_must_weigh_something():
    settings = LossSettings(text_weight=0.0, reverse_weight=0.0)
    Objective(settings, prototypes=True)
    with pytest.raises(UserError, match="every relation weighs 0"):
        Objective(settings, prototypes=False)
