"""What this machine can do: its memory, and the seconds of a training step, by a few real steps on made-up tokens."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix

from ..config import Settings
from ..data.corpus import Corpus
from ..data.texts import Texts
from ..data.tokens import RaggedTokens
from ..model.encode import pick_device, wants_bf16
from ..model.encoder import load_encoder
from ..model.network import num_free_vectors
from .begin import blank_state
from .data import TrainingData
from .estimate import Plan
from .log import Log
from .loop import run_phase
from .phase import Phase

STEPS = 6


def seconds_per_step(corpus: Corpus, plan: Plan, settings: Settings) -> float:
    """The median of some steps after the first, which warms up."""
    device = pick_device(settings.training.device)
    bf16 = wants_bf16(settings.training.precision, device)
    values = {"training.epochs": 1, "training.batch_size": plan.batch_queries}
    short = settings.with_values(values, "timing")
    if settings.training.threads:
        torch.set_num_threads(settings.training.threads)
    torch.manual_seed(0)
    encoder = load_encoder(short.encoder).to(device)
    data = _made_up(corpus, plan, short, encoder.tokenizer.get_vocab_size())
    phase = Phase("all", short, data, 1, bf16)
    state = blank_state(phase, encoder, device)
    F = max(1, len(state.network.free_vectors_FD))
    state.network.free_vector_of_L.copy_(torch.arange(data.num_labels, device=device) % F)
    state.centroids.count_L.fill_(1)
    ends: list[float] = []

    def note() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as place, Log(Path(place) / "metrics.jsonl", quiet=True) as log:
        run_phase(phase, state, log, None, note)
    return float(np.median(np.diff(ends)))


def memory_bytes_of(device: torch.device) -> int:
    """What a GPU has in all; on a CPU the machine's main memory."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _made_up(corpus: Corpus, plan: Plan, settings: Settings, num_tokens: int) -> TrainingData:
    """Random queries with their true labels, and as many other labels as the free vectors need."""
    rng = np.random.default_rng(0)
    positives = corpus.split("train").positives
    rows = rng.choice(np.flatnonzero(np.diff(positives.indptr)), STEPS * plan.batch_queries)
    drawn = positives[rows]
    met, columns = np.unique(drawn.indices, return_inverse=True)
    num_labels = max(len(met), num_free_vectors(settings.prototypes, plan.num_labels))
    matrix = csr_matrix((drawn.data, columns, drawn.indptr), shape=(len(rows), num_labels))
    return TrainingData(
        Texts.of([""] * len(rows)),
        _tokens(len(rows), plan.query_tokens, num_tokens, rng),
        _tokens(num_labels, plan.label_tokens, num_tokens, rng),
        matrix,
        np.ones(num_labels),
    )


def _tokens(count: int, mean: float, num_tokens: int, rng: np.random.Generator) -> RaggedTokens:
    length = max(1, round(mean))
    ids_T = rng.integers(0, num_tokens, count * length, dtype=np.int32)
    return RaggedTokens(ids_T, np.arange(count + 1, dtype=np.int64) * length)
