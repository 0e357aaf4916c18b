"""Models whose prototypes are mixtures: labels that change, shares of a score, indexes, and what is told of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from fusion.test_judge import made_judge
from model.cases_of_labels import made_model

from primexmc.cli.about_model import model_facts, model_text
from primexmc.errors import UserError
from primexmc.fusion.blend import Blend, Weights
from primexmc.model.explanation import explain
from primexmc.model.fair_length import UNKNOWN
from primexmc.model.mixture import NO_MIXTURE, Mixture
from primexmc.model.model import PrimeModel
from primexmc.model.new_prototypes import label_vectors, trained_prototypes

MIXTURE = Mixture(0.75, 0.25)


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def mixed_model(**values):
    model = made_model(**values)
    h_LD = label_vectors(model, model.labels.texts)
    model.mixture, model.prototypes_LD = MIXTURE, MIXTURE.of(model.prototypes_LD, h_LD, model.centroids.c_LD)
    model.labels_changed()
    return model


def slow_prototypes(model):
    """What the mixture of each label is, from its parts as they now are."""
    h_LD = label_vectors(model, model.labels.texts)
    z_LD = trained_prototypes(model, h_LD, model.centroids, model.network.free_vector_of_L)
    z, h, c = (x.double().numpy() for x in (z_LD, h_LD, model.centroids.c_LD))
    return np.stack([(z[n] + 0.75 * unit(h[n]) + 0.25 * unit(c[n])) / 2 for n in range(len(z))])


def test_the_weighted_mean():
    model = mixed_model()
    np.testing.assert_allclose(model.prototypes_LD.numpy(), slow_prototypes(model), atol=1e-6)
    assert not model.centroids.has_L[3], "a label without a centroid has zeros for it"
    z_LD = torch.randn(4, 16)
    assert NO_MIXTURE.of(z_LD, z_LD, z_LD) is z_LD
    assert Mixture(1.0, 0.0).of(z_LD.half(), z_LD, z_LD).dtype == torch.float16


def test_a_trained_label_that_changes_stays_a_mixture():
    model = mixed_model()
    before = model.prototypes_LD.clone()
    model.rename_labels({f"uid {n}": model.labels.texts[n] for n in (1, 3, 8)})
    torch.testing.assert_close(model.prototypes_LD, before, atol=1e-6, rtol=0)
    model.rename_labels({"uid 5": "an old castle"})
    model.update_labels({"uid 3": ["a red horse", "a dog"], "uid 7": ["a boat"]})
    np.testing.assert_allclose(model.prototypes_LD.numpy(), slow_prototypes(model), atol=1e-6)
    changed = (model.prototypes_LD - before).abs().amax(1) > 1e-3
    assert changed.nonzero()[:, 0].tolist() == [3, 5, 7]
    kept = model.prototypes_LD[[5, 7]].clone()
    model.remove_labels(["uid 0", "uid 6"])
    assert torch.equal(model.prototypes_LD[[4, 5]], kept)
    model.add_labels(["a ship"], queries=[["a red ship"]])
    assert torch.equal(model.prototypes_LD[[4, 5]], kept)
    model.rename_labels({"uid 5": "a tree"})
    np.testing.assert_allclose(model.prototypes_LD[:-1].numpy(), slow_prototypes(model)[:-1], atol=1e-6)


def test_a_new_label_is_not_favoured_beside_shorter_ones():
    """Without a memory nothing tells how long it may be; the others' length is the measure."""
    model = mixed_model(remembers=False)
    length = model.prototypes_LD.norm(dim=1).mean()
    assert length < 0.95
    model.add_labels(["a ship"])
    assert float(model.prototypes_LD[-1].norm()) == pytest.approx(UNKNOWN * float(length), abs=1e-5)


@pytest.mark.parametrize("label", [2, 3])
def test_the_parts_make_the_cosine(label):
    model = mixed_model()
    why = explain(model, "a red boat", label)
    product = float(model.encode(["a red boat"])[0] @ model.prototypes_LD[label].numpy())
    assert sum(part.share for part in why.parts) == pytest.approx(product, abs=1e-5)
    assert why.score == pytest.approx(product, abs=1e-5)
    assert [part.part for part in why.parts] == ["text", "centroid", "free vector"][:: 1 if label == 2 else 2]


def test_kept_with_the_model(tmp_path):
    model = mixed_model()
    model.save(tmp_path / "m")
    again = PrimeModel.load(tmp_path / "m", device="cpu")
    assert again.mixture == MIXTURE and torch.equal(again.prototypes_LD, model.prototypes_LD)
    facts = model_facts(tmp_path / "m")
    assert facts["mixture"] == [0.75, 0.25] and facts["judge"] is False
    assert "label texts (0.75) and centroids (0.25)" in model_text(facts) and "judge: none" in model_text(facts)
    assert "text counts 0.75 and its centroid 0.25" in (tmp_path / "m" / "README.md").read_text()
    file = tmp_path / "m" / "primexmc.json"
    description = json.loads(file.read_text())
    for damage in ([-1, 0.5], ["much"], [1, 2, 3], 7, [float("nan"), 0]):
        file.write_text(json.dumps(description | {"mixture": damage}))
        with pytest.raises(UserError, match=r"primexmc\.json: its mixture is damaged"):
            PrimeModel.load(tmp_path / "m", device="cpu")
    file.write_text(json.dumps({name: value for name, value in description.items() if name != "mixture"}))
    old = PrimeModel.load(tmp_path / "m", device="cpu")
    assert old.mixture == NO_MIXTURE and torch.equal(old.prototypes_LD, model.prototypes_LD)
    assert "as the network makes them" in model_text(model_facts(tmp_path / "m"))


def test_a_judge_is_told_of_and_a_damaged_one_is_one_sentence(tmp_path):
    model = made_model()
    model.blend = Blend({"all": Weights(0.1, judge=made_judge())}, "all")
    model.save(tmp_path / "m")
    assert PrimeModel.load(tmp_path / "m", device="cpu").blend == model.blend
    assert "judge: in mode all" in model_text(model_facts(tmp_path / "m"))
    assert "a judge, fitted on validation" in (tmp_path / "m" / "README.md").read_text()
    file = tmp_path / "m" / "primexmc.json"
    description = json.loads(file.read_text())
    for damage in ({"d_F": [1.0]}, {"spread_F": [0] * 7}, {"a_FH": None}, {"b_H": [float("inf")] * 3}):
        judge = description["blend"]["weights"]["all"]["judge"] | damage
        blend = {"best": "all", "weights": {"all": dataclasses.asdict(Weights(0.1)) | {"judge": judge}}}
        file.write_text(json.dumps(description | {"blend": blend}))
        with pytest.raises(UserError, match=r"primexmc\.json: its blend is damaged"):
            PrimeModel.load(tmp_path / "m", device="cpu")
