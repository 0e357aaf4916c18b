"""What the presets say, against the paper's table and the usual constants, typed off here once more."""

from __future__ import annotations

import pytest

from primexmc.config import Settings, flatten
from primexmc.presets import load_preset, preset_names, preset_text
from primexmc.training.derive import RULES

# free vectors, batch, epochs, learning rate, length, A, B, titles only
PAPER = {
    "lf-amazontitles-131k": (65_536, 3200, 300, 3e-4, 32, 0.6, 2.6, True),
    "lf-amazon-131k": (65_536, 512, 300, 3e-4, 128, 0.6, 2.6, False),
    "lf-amazontitles-1.3m": (131_072, 3200, 300, 3e-4, 32, 0.6, 2.6, True),
    "lf-wikititles-500k": (65_536, 3200, 300, 2e-4, 32, 0.5, 0.4, True),
    "lf-wikipedia-500k": (65_536, 512, 50, 1e-4, 256, 0.5, 0.4, False),
    "lf-wikiseealso-320k": (65_536, 1024, 200, 1e-4, 128, 0.55, 1.5, False),
}
OURS = ("wordnet", "gutenberg", "tate", "msdocs-seealso", "eurlex57k")


def settings_of(name):
    return Settings().with_values(load_preset(name), name)


@pytest.mark.parametrize("name", PAPER)
def test_paper(name):
    s = settings_of(name)
    free_vectors, batch, epochs, rate, length, a, b, titles = PAPER[name]
    assert (s.prototypes.num_free_vectors, s.training.batch_size, s.training.epochs) == (free_vectors, batch, epochs)
    assert s.training.learning_rate == s.training.prototype_learning_rate == rate
    assert s.data.query_tokens == s.data.label_tokens == length
    assert (s.data.propensity_a, s.data.propensity_b) == (a, b)
    assert s.data.fields == ("title" if titles else "title+content")
    assert s.sampling.positives_per_query == 2 and s.sampling.positives == "propensity"
    assert (s.loss.name, s.loss.margin_min, s.loss.margin_max, s.loss.regulariser_weight) == ("margin", 0.1, 0.3, 0.1)
    assert (s.loss.tie_gradient, s.loss.softmax_tau, s.loss.num_negatives) == (0.5, 0.1, 100)
    assert (s.loss.regulariser_margin, s.loss.margin_form, s.loss.detach_margin) == (0.1, "max", True)
    assert (s.prototypes.centroid_mode, s.prototypes.ema_decay) == ("ema", 0.95)
    assert (s.prototypes.drop_centroid, s.prototypes.drop_free_vector) == (0, 0)
    assert (s.prototypes.heads, s.prototypes.width, s.prototypes.dropout) == (1, 1024, 0.1)
    assert (s.training.weight_decay, s.training.adam_eps, s.training.warmup_steps) == (0.01, 1e-6, 100)
    assert (s.sampling.batches, s.sampling.smallest_cluster, s.sampling.largest_cluster) == ("ngame", 4, 1024)
    assert s.encoder.name == "sentence-transformers/msmarco-distilbert-base-v4" and s.encoder.pooling == "mean"


@pytest.mark.parametrize("name", PAPER)
def test_lite_is_one_positive_and_half_the_batch(name):
    whole, lite = settings_of(name).to_dict(), settings_of(f"{name}-lite").to_dict()
    assert lite["sampling"].pop("positives_per_query") == 1 and whole["sampling"].pop("positives_per_query") == 2
    assert 2 * lite["training"].pop("batch_size") == whole["training"].pop("batch_size")
    assert lite == whole


@pytest.mark.parametrize("name", OURS)
def test_ours(name):
    """What is tuned may move; what makes their results comparable may not."""
    s = settings_of(name)
    assert s.training.refit and s.training.validate_every > 0
    assert s.encoder.name == "sentence-transformers/all-MiniLM-L6-v2" and s.data.fields == "title+content"
    assert (s.data.propensity_a, s.data.propensity_b) == (0.55, 1.5)
    named = dict(flatten(load_preset(name)))
    assert all(key in named for key in RULES), "settings that would be derived from the data are named"


@pytest.mark.parametrize("name", preset_names())
def test_every_header_reads_as_an_experiment(name):
    """Its name and a sentence that ends; where the numbers come from or why there are none; nothing too wide."""
    settings_of(name)
    header = [line for line in preset_text(name).splitlines() if line.startswith("#")]
    assert header[0].startswith(f"# {name}: ") and header[0].endswith(".")
    assert max(map(len, preset_text(name).splitlines())) <= 125
    if name in PAPER or name.removesuffix("-lite") in PAPER or name in OURS:
        text = "\n".join(header)
        assert all(f"# {word}" in text for word in ("Where the numbers come from:", "Hardware:", "Command:"))
        assert f"--preset {name}" in text and ("Expected" in text or "trial" in text)
