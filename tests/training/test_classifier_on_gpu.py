"""The classifier on a CUDA device: its gradient, that the CPU never waits within a step, and what an epoch costs."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from model.cases_of_labels import made_model
from scipy.sparse import csr_matrix

from primexmc.config import Settings
from primexmc.losses import Positives
from primexmc.model.memory import Memory
from primexmc.training.classifier_labels import AllLabels, SampledLabels, softmax_over_all
from primexmc.training.fit_classifier import dropped_out, fit_classifier

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
DEVICE = torch.device("cuda")


def unit(seed, num, dim=64):
    return torch.nn.functional.normalize(torch.randn(num, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def pairs(seed, num_queries, num_labels, each=3):
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, num_labels, (num_queries, each)).ravel()
    ones, starts = np.ones(len(columns), np.float32), np.arange(num_queries + 1) * each
    made = csr_matrix((ones, columns, starts), shape=(num_queries, num_labels))
    made.sum_duplicates()
    made.data[:] = 1
    return made


@pytest.mark.parametrize("size", [None, 64, 1000])
def test_bf16_is_what_the_cpu_does_in_bf16(size):
    """The CPU rounds the same numbers and adds them up in float32; float64 tells how far that is from the truth."""
    true, q, w = pairs(0, 50, 300), unit(1, 50), unit(2, 300)
    found = []
    for device, dtype, bf16 in (
        (DEVICE, torch.float32, True),
        ("cpu", torch.float32, True),
        ("cpu", torch.float64, False),
    ):
        w_LD = w.to(device, dtype).requires_grad_()
        loss = softmax_over_all(q.to(device, dtype), w_LD, Positives.from_csr(true, device), 0.05, size, bf16=bf16)
        found.append((loss.item(), torch.autograd.grad(loss, w_LD)[0].double().cpu()))
    (on_gpu, gpu_LD), (on_cpu, cpu_LD), (truth, true_LD) = found
    assert on_gpu == pytest.approx(on_cpu, rel=1e-4) and on_gpu == pytest.approx(truth, rel=1e-2)
    assert (gpu_LD - cpu_LD).norm() < 2e-3 * cpu_LD.norm() and (gpu_LD - true_LD).norm() < 0.05 * true_LD.norm()


def labels_of(name, w_LD, positives, filtered=None):
    settings = Settings().with_values({"classifier.labels": name}, "test")
    if name == "sampled":
        return SampledLabels(w_LD, positives, filtered, settings)
    return AllLabels(w_LD, positives, filtered, settings, bf16=True)


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("name", ["all", "sampled"])
def test_the_cpu_never_waits_within_a_step(name, filtered):
    """With synchronisation forbidden, from the batch to the new W."""
    positives, h_ND, w_LD = pairs(0, 400, 300), unit(1, 400).half().to(DEVICE), unit(2, 300).to(DEVICE)
    labels = labels_of(name, w_LD, positives, pairs(5, 400, 300, 1) if filtered else None)
    generator = torch.Generator(DEVICE).manual_seed(0)
    rows = np.random.default_rng(0).permutation(400)

    def step(number):
        met = labels.make(rows[100 * number : 100 * number + 100], number)
        return labels.learn(dropped_out(h_ND[met.queries_Q].float(), 0.5, generator), met, 1e-3)

    step(0), step(1)
    before = w_LD.clone()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss = step(2) + step(3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.isfinite(loss) and torch.isfinite(w_LD).all() and not torch.equal(before, w_LD)


@pytest.mark.parametrize("name", ["all", "sampled"])
def test_it_fits_as_on_the_cpu(name):
    rates = {"all": 0.01, "sampled": 0.05}
    values = {"classifier.labels": name, "classifier.learning_rate": rates[name], "classifier.dropout": 0.2}
    model = made_model(**values | {"classifier.epochs": 20, "classifier.batch_size": 16})
    on_cpu = fit_classifier(model, model.memory)
    z_LD = model.prototypes_LD
    model.prototypes_LD = z_LD.to(DEVICE)
    on_gpu = fit_classifier(model, model.memory).cpu()
    true, rows = model.memory.positives.toarray(), np.arange(len(model.memory))
    right = [true[rows, (model.memory.h_ND.float() @ v.T).argmax(1).numpy()].mean() for v in (z_LD, on_cpu, on_gpu)]
    assert right[2] > right[0] + 0.1 and right[2] > right[1] - 0.1


@pytest.mark.parametrize("name", ["all", "sampled"])
def test_what_an_epoch_costs(name, capsys):
    """As large as wordnet: the time is told, not judged. All products of an epoch at once would take 35 GiB."""
    num_queries, num_labels, dim = 92_000, 101_000, 384
    settings = {"classifier.labels": name, "classifier.epochs": 2}
    model = made_model(**settings)
    model.prototypes_LD = unit(0, num_labels, dim).to(DEVICE)
    memory = Memory(unit(1, num_queries, dim).half(), pairs(2, num_queries, num_labels), model.memory.texts)
    told = []
    torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    w_LD = fit_classifier(model, memory, tell=told.append)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**30
    with capsys.disabled():
        each = told[1]["seconds"] - told[0]["seconds"]
        print(f"\n{name}: {each:.2f} s an epoch, {time.perf_counter() - started:.1f} s for two, {peak:.1f} GiB at most")
    assert torch.isfinite(w_LD).all() and peak < 12
