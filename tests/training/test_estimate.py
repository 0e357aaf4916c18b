"""Estimates of memory and work, against what a training really holds and does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model import tiny

from primexmc.config import Settings
from primexmc.data.corpus import Corpus
from primexmc.model.size import EncoderSize, encoder_size
from primexmc.model.transformer import TransformerEncoder
from primexmc.training.begin import blank_state
from primexmc.training.data import TrainingData
from primexmc.training.data import prepare as prepare_data
from primexmc.training.estimate import GIB, Plan, estimate, estimate_lines, memory_bytes, plan_training
from primexmc.training.phase import Phase
from primexmc.training.timing import seconds_per_step

SETTINGS = Settings().with_values(
    {"training.batch_size": 20, "training.epochs": 3, "prototypes.num_free_vectors": 7, "prototypes.width": 64}, "test"
)


def corpus(num_queries=90, num_labels=30, per_query=2, seed=0):
    rng = np.random.default_rng(seed)
    labels = [[f"label {i}" for i in rng.choice(num_labels, per_query, replace=False)] for _ in range(num_queries)]
    return Corpus.from_lists([f"a {tiny.THINGS[i % 10]} and a dog" for i in range(num_queries)], labels)


def plan(**changes):
    values = {
        "num_queries": 90, "num_labels": 30, "num_pairs": 180, "text_bytes": 900, "query_tokens": 5.0,
        "label_tokens": 2.0, "batch_queries": 20, "batch_labels": 24, "passes": (("all", 90, 3),), "validates": False,
    }  # fmt: skip
    return Plan(**(values | changes))


def test_passes_steps_and_texts_without_validation():
    made = plan_training(corpus(), SETTINGS.with_values({"training.validate_every": 0}, "test"), 5, 2)
    assert made.passes == (("all", 90, 3),) and not made.validates
    assert made.num_steps == 3 * 5  # 90 queries in batches of 20
    assert made.num_texts == 3 * 90 + 15 * made.batch_labels
    assert 15 < made.batch_labels <= 30


def test_a_refit_is_counted_and_held_out_queries_are_not():
    values = {"training.validate_every": 1, "training.refit": True, "data.validation_fraction": 0.2}
    made = plan_training(corpus(), SETTINGS.with_values(values, "test"), 5, 2)
    assert made.passes == (("choose", 72, 3), ("refit", 90, 3)) and made.validates


def test_labels_of_a_batch_follow_from_the_draws():
    """One draw a query and as many labels as draws: every query of its own label."""
    own = Corpus.from_lists(["text"] * 50, [[f"label {i}"] for i in range(50)])
    assert plan_training(own, SETTINGS, 5, 2).batch_labels == 20
    one = Corpus.from_lists(["text"] * 50, [["the label"]] * 50)
    assert plan_training(one, SETTINGS, 5, 2).batch_labels == 1


def test_what_is_kept_is_what_the_state_holds():
    """Value, gradient and two moments of every parameter, the centroids and the bank, of a state that was made."""
    encoder, data = tiny.static_encoder(), corpus()
    settings = SETTINGS.with_values({"training.validate_every": 0}, "test")
    prepared: TrainingData = prepare_data(data, data.train, encoder, settings)
    state = blank_state(Phase("all", settings, prepared, 3, False), encoder, torch.device("cpu"))
    held = sum(4 * 4 * parameter.numel() for parameter in state.network.parameters())
    held += 4 * state.centroids.c_LD.numel() + 4 * state.query_bank_ND.numel()
    size = EncoderSize(sum(parameter.numel() for parameter in encoder.parameters()), tiny.DIM)
    memory = memory_bytes(plan(), settings, size, bf16=False, flash=False)
    assert memory["kept"] == pytest.approx(held, rel=0.1)  # biases and norms are left out
    kept = [memory[name] for name in ("encoder", "prototype_network", "free_vectors", "centroids", "query_bank")]
    assert memory["the_classifier"] == 0
    on_top = max(memory["a_step"], memory["a_refresh"], memory["all_prototypes"])
    assert memory["total"] == sum(kept) + 1.5 * on_top


def test_validation_adds_a_copy_of_the_best():
    size = EncoderSize(1000, 16)
    plain = memory_bytes(plan(), SETTINGS, size, bf16=False, flash=False)
    copied = memory_bytes(plan(validates=True), SETTINGS, size, bf16=False, flash=False)
    assert copied["encoder"] - plain["encoder"] == 4 * 1000
    assert copied["free_vectors"] == plain["free_vectors"] * 20 / 16


@pytest.mark.parametrize("length", [8, 32])
def test_activations_are_what_autograd_saves(tmp_path, length):
    """The rule was counted on wide encoders; a narrow one must come out near it, too."""
    width = {"dim": 64, "hidden_dim": 256, "n_heads": 4}
    tiny.save_hugging_face(tmp_path, "distilbert", **width)
    encoder = TransformerEncoder.from_source(str(tmp_path), "mean", -1.0).train()
    batch = tiny.batch_of_rows([[5] * length] * 32)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in encoder.parameters()}
    saved = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = (storage.nbytes(), storage)  # kept, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        encoder(batch)
    ours = plan(query_tokens=length, label_tokens=0.0, batch_queries=32, batch_labels=0)
    without = SETTINGS.with_values({"prototypes.enabled": False}, "test")
    memory = memory_bytes(ours, without, encoder_size(str(tmp_path)), bf16=False, flash=False)
    assert memory["a_step"] == pytest.approx(sum(size for size, _ in saved.values()), rel=0.25)


def test_parts_of_the_texts_at_once_take_less():
    size = EncoderSize(22_600_000, 384, 6, 1536, 12)
    whole, parts = (
        memory_bytes(
            plan(),
            SETTINGS.with_values({"training.texts_at_once": n, "encoder.packed": "on"}, "test"),
            size,
            bf16=True,
            flash=True,
        )
        for n in (0, 11)
    )
    per_token = 6 * (18 * 384 + 4 * 1536) + 12 * 384 + 2 * 1536  # of 20 x 5 + 24 x 2 tokens of 44 texts
    assert whole["a_step"] - parts["a_step"] == pytest.approx(0.75 * 148 * per_token)


def test_a_refresh_is_counted_where_there_is_one():
    size = EncoderSize(1000, 16)
    random = SETTINGS.with_values({"sampling.batches": "random"}, "test")
    assert memory_bytes(plan(), random, size, bf16=False, flash=False)["a_refresh"] == 0
    cells = 90 * 16
    found = memory_bytes(plan(), SETTINGS, size, bf16=False, flash=False)["a_refresh"]
    assert found == 8 * cells + 12 * cells / 4 + 64 * 90


def test_facts_and_lines():
    size = EncoderSize(22_600_000, 384, 6, 1536, 12)
    big = plan(num_queries=1_000_000, num_labels=500_000, passes=(("choose", 995_000, 20), ("refit", 1_000_000, 20)))
    facts = estimate(big, SETTINGS, size, on_gpu=True, bf16=True, step_s=None, has_bytes=4 * GIB)
    assert facts["steps"] == 20 * 49_750 + 20 * 50_000
    refresh = 8 * 2**27 + 12 * 384 * 1e6 / 4 + 64 * 1e6  # more than all prototypes, and the bank is in half precision
    assert facts["gpu_gib"] == pytest.approx(
        (16 * (22.6e6 + 7 * 384 + 4 * 384**2 + 2 * 384 * 64) + 384 * (2 * 1e6 + 4 * 5e5) + refresh) / GIB, abs=0.01
    )
    assert facts["host_gib"] > facts["memory_gib"]["kept"] and facts["train_s"] is None
    lines = estimate_lines(facts)
    assert "22.6M parameters" in lines[0] and "cuda" in lines[0]
    assert "of GPU memory" in lines[1] and not any("more than" in line for line in lines)
    assert "20 + at most 20 (again, on all of train) epochs" in lines[3]
    tokens_per_step = 20 * 5.0 + 24 * 2.0
    assert facts["h200_s"] == pytest.approx(facts["steps"] * tokens_per_step * 0.074 / 37_000, abs=0.1)
    assert "on one H200 about 10 minutes" in lines[-1]


def test_too_little_memory_is_said():
    """Of the GPU where there is one, else of the machine; each by its own need."""
    wide = EncoderSize(500_000_000, 1024, 24, 4096, 16)
    for on_gpu, owner in ((True, "the GPU"), (False, "this machine")):
        facts = estimate(plan(), SETTINGS, wide, on_gpu=on_gpu, bf16=True, step_s=None, has_bytes=2 * GIB)
        lines = estimate_lines(facts)
        assert f"  more than the 2.0 GiB that {owner} has: lower training.batch_size" in lines
        assert facts["h200_s"] is None and "time: not known" in lines[-1]


@pytest.mark.parametrize(
    ("step_s", "shown"), [(1.0, "about 15 seconds"), (60.0, "about 15 minutes"), (3600.0, "about 15.0 hours")]
)
def test_time_in_the_unit_that_fits(step_s, shown):
    facts = estimate(plan(), SETTINGS, EncoderSize(1000, 16), on_gpu=False, bf16=False, step_s=step_s, has_bytes=GIB)
    assert facts["train_s"] == round(15 * step_s, 1) and facts["gpu_gib"] is None
    assert shown in estimate_lines(facts)[-1]


def test_a_step_is_timed_with_the_real_loop():
    data = corpus()
    settings = SETTINGS.with_values({"training.device": "cpu", "encoder.name": "static"}, "test")
    made = plan_training(data, settings, 5, 2)
    assert 0 < seconds_per_step(data, made, settings) < 60


@pytest.mark.parametrize(("labels", "copies", "products"), [("sampled", 3, 2048 * 10_240), ("all", 6, 2**24)])
def test_a_classifier_is_counted(labels, copies, products):
    """As large as LF-AmazonTitles-1.3M on a CPU: copies of W, the queries' embeddings, the products of a step."""
    settings = SETTINGS.with_values({"classifier.enabled": True, "classifier.labels": labels}, "test")
    large = plan(num_queries=2_200_000, num_labels=1_300_000)
    memory = memory_bytes(large, settings, EncoderSize(10_000, 64), bf16=False, flash=False)
    expected = copies * 1_300_000 * 64 * 4 + 2_200_000 * 64 * 2 + 16 * products
    assert memory["the_classifier"] == expected
    assert memory["total"] >= memory["kept"] + expected
