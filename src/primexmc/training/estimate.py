"""What a training will need, said before it begins: memory by rules of thumb, steps by count, time where it is timed.

The rules count what training keeps: 16 bytes a parameter (value, gradient, AdamW's two moments), 4 more for the best
epoch's copy, 4 D bytes a label (centroid) and 2 or 4 D a training query (bank). What a step holds for its backward pass
was counted from the tensors that autograd saves, what a refresh needs from its own. "About" is meant: allocators and
libraries add to it. docs/performance.md compares with measured peaks.
Shapes: N training queries, L labels, F free vectors, Q queries and M labels of a batch, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import ClassifierSettings, Settings
from ..data.corpus import Corpus
from ..data.propensity import inverse_propensity
from ..data.texts import Texts
from ..losses.log_sum_exp import CELLS_AT_ONCE as PRODUCTS_AT_ONCE
from ..model.network import num_free_vectors
from ..model.size import EncoderSize
from ..sampling.clusters import CELLS_AT_ONCE
from ..sampling.negatives import label_source
from ..sampling.positives import PositiveSampler, batch_labels
from .state import bank_type

GIB = 2**30
LIBRARIES = 0.6 * GIB  # Python with torch, and a little of everything
FREED_AND_HELD = 0.5  # of a step on a CPU: blocks of ever new sizes, which the allocator does not give back; measured
CUDA_LIBRARIES = 1.5 * GIB  # of host memory, where a GPU is used
MINILM_ON_H200 = 37_000 / 0.074  # tokens a second in training, from docs/lab.md; no other rate has been measured
PADDING = 1.1  # where texts are padded, in groups of like length


@dataclass(frozen=True)
class Plan:
    """The counts that the rules look at."""

    num_queries: int
    num_labels: int
    num_pairs: int
    text_bytes: int
    query_tokens: float  # on average, cut
    label_tokens: float
    batch_queries: int
    batch_labels: int
    passes: tuple[tuple[str, int, int], ...]  # (name, queries, epochs) of each phase
    validates: bool

    @property
    def batch_tokens(self) -> float:
        return self.batch_queries * self.query_tokens + self.batch_labels * self.label_tokens

    @property
    def num_steps(self) -> int:
        return sum(epochs * -(-queries // self.batch_queries) for _, queries, epochs in self.passes)

    @property
    def num_texts(self) -> int:
        """Texts that go through the encoder with gradient."""
        return sum(epochs * queries for _, queries, epochs in self.passes) + self.num_steps * self.batch_labels


def plan_training(corpus: Corpus, settings: Settings, query_tokens: float, label_tokens: float) -> Plan:
    """Of `corpus.train` with these settings; the labels of a batch are drawn once, for random queries."""
    train, training = corpus.split("train"), settings.training
    validates = training.validate_every > 0
    held_out = 0
    if validates and corpus.val is None:
        data = settings.data
        held_out = min(round(len(train) * data.validation_fraction), data.validation_max)
    passes = [("choose" if validates else "all", len(train) - held_out, training.epochs)]
    if validates and training.refit:
        everything = len(train) + (0 if corpus.val is None else len(corpus.val))
        passes.append(("refit", everything, training.epochs))
    batch_queries = min(training.batch_size, len(train))
    return Plan(
        num_queries=len(train),
        num_labels=len(corpus.labels),
        num_pairs=int(train.positives.nnz),
        text_bytes=sum(int(Texts.of(texts).offsets[-1]) for texts in (train.texts, corpus.labels.texts)),
        query_tokens=query_tokens,
        label_tokens=label_tokens,
        batch_queries=batch_queries,
        batch_labels=_labels_of_a_batch(corpus, settings, batch_queries),
        passes=tuple(passes),
        validates=validates,
    )


def memory_bytes(plan: Plan, settings: Settings, size: EncoderSize, *, bf16: bool, flash: bool) -> dict[str, float]:
    """By what it is needed for; "kept" is there all the time, of the others the larger comes on top.

    `flash`: attention whose weights are never stored, as on GPUs.
    """
    D, prototypes = size.dim, settings.prototypes
    per_parameter = 20 if plan.validates else 16
    network = (4 * D * D + 2 * D * prototypes.width) if prototypes.enabled else 0
    parts = {
        "encoder": per_parameter * size.num_parameters,
        "prototype_network": per_parameter * network,
        "free_vectors": per_parameter * D * num_free_vectors(prototypes, plan.num_labels),
        "centroids": 4 * D * plan.num_labels,
        "query_bank": bank_type(plan.num_queries, D).itemsize * D * plan.num_queries,
    }
    step = _activations(plan, settings, size, bf16, flash) + 32 * plan.batch_queries * plan.batch_labels
    if prototypes.enabled:
        step += plan.batch_labels * (39 * prototypes.width + 75 * D)
    comes_on_top = {
        "a_step": step,
        "a_refresh": _refresh(plan, settings, D, flash),
        "all_prototypes": 8 * D * plan.num_labels,
        "the_classifier": _classifier(plan, settings.classifier, D, flash) if settings.classifier.enabled else 0.0,
    }
    kept, held = sum(parts.values()), 0 if flash else FREED_AND_HELD
    return {**parts, "kept": kept, **comes_on_top, "total": kept + (1 + held) * max(comes_on_top.values())}


def _refresh(plan: Plan, settings: Settings, D: int, on_gpu: bool) -> float:
    """Clustering: two temporaries of points, the means of the last level's halves three times, and orders of points."""
    if settings.sampling.batches == "random":
        return 0.0
    temporaries = 8 * min(CELLS_AT_ONCE[on_gpu], plan.num_queries * D)
    return temporaries + 12 * D * plan.num_queries / settings.sampling.smallest_cluster + 64 * plan.num_queries


def _classifier(plan: Plan, chosen: ClassifierSettings, D: int, on_gpu: bool) -> float:
    """W with Adam's moments, for all labels also their unit vectors and both gradients; the queries in half precision;
    and products, four numbers each."""
    queries = min(chosen.batch_size, plan.num_queries)
    if chosen.labels == "sampled":
        copies, cells = 3, queries * min(plan.num_labels, queries * chosen.positives_per_query)
    else:
        copies, cells = 6, min(queries * plan.num_labels, PRODUCTS_AT_ONCE["cuda" if on_gpu else "cpu"])
    return 4 * copies * D * plan.num_labels + 2 * D * plan.num_queries + 16 * cells


def host_bytes(plan: Plan, kept: float, *, on_gpu: bool) -> float:
    """Libraries, texts and pairs; next to a GPU also a copy of what is kept, when a checkpoint is written."""
    data = plan.text_bytes + 24 * plan.num_pairs
    if on_gpu:
        return data + CUDA_LIBRARIES + kept
    return data + LIBRARIES


def estimate(
    plan: Plan, settings: Settings, size: EncoderSize, *, on_gpu: bool, bf16: bool, step_s: float | None, has_bytes: int
) -> dict[str, Any]:
    """Plain values, ready for JSON. `step_s` is a measured step, None where none could be timed; `has_bytes` is the
    memory that the GPU has, or without one the machine."""
    memory = memory_bytes(plan, settings, size, bf16=bf16, flash=on_gpu)
    host = host_bytes(plan, memory["kept"], on_gpu=on_gpu)
    return {
        "encoder": settings.encoder.name,
        "encoder_parameters": size.num_parameters,
        "device": "cuda" if on_gpu else "cpu",
        "gpu_gib": round(memory["total"] / GIB, 2) if on_gpu else None,
        "host_gib": round((host if on_gpu else host + memory["total"]) / GIB, 2),
        "has_gib": round(has_bytes / GIB, 2),
        "memory_gib": {name: round(value / GIB, 3) for name, value in memory.items()},
        "steps": plan.num_steps,
        "epochs": {name: epochs for name, _, epochs in plan.passes},
        "texts_encoded": plan.num_texts,
        "queries_a_step": plan.batch_queries,
        "labels_a_step": plan.batch_labels,
        "step_s": step_s,
        "train_s": None if step_s is None else round(step_s * plan.num_steps, 1),
        "h200_s": round(plan.num_steps * plan.batch_tokens / MINILM_ON_H200, 1) if _is_minilm(size) else None,
    }


def estimate_lines(facts: dict[str, Any]) -> list[str]:
    """The same as lines of text."""
    memory = facts["memory_gib"]
    parts = ", ".join(f"{name.replace('_', ' ')} {memory[name]:.2g}" for name in PARTS if memory[name] >= 0.005)
    where = f"about {facts['gpu_gib']:.1f} GiB of GPU memory and " if facts["gpu_gib"] is not None else "about "
    epochs = " + at most ".join(f"{count}{_purpose(name)}" for name, count in facts["epochs"].items())
    texts = facts["texts_encoded"]
    shown = f"{texts / 1e6:.3g} million" if texts >= 1e6 else f"{texts:,}"
    return [
        f"training with {facts['encoder']} ({facts['encoder_parameters'] / 1e6:.1f}M parameters) on {facts['device']}:",
        f"  {where}{facts['host_gib']:.1f} GiB of main memory",
        *_too_much(facts),
        f"    GiB: {parts}",
        f"  {epochs} epochs, {facts['steps']:,} steps of {facts['queries_a_step']:,} queries and about "
        f"{facts['labels_a_step']:,} labels, {shown} texts through the encoder",
        f"  {_time(facts)}",
    ]


PARTS = (
    "encoder", "prototype_network", "free_vectors", "centroids", "query_bank", "a_step", "a_refresh", "all_prototypes",
    "the_classifier",
)  # fmt: skip


def _purpose(phase: str) -> str:
    return " (again, on all of train)" if phase == "refit" else ""


def _too_much(facts: dict[str, Any]) -> list[str]:
    needed = facts["host_gib"] if facts["gpu_gib"] is None else facts["gpu_gib"]
    owner = "this machine" if facts["gpu_gib"] is None else "the GPU"
    if needed <= facts["has_gib"]:
        return []
    return [f"  more than the {facts['has_gib']:.1f} GiB that {owner} has: lower training.batch_size"]


def _time(facts: dict[str, Any]) -> str:
    if facts["step_s"] is not None:
        shown, step_s = _duration(facts["train_s"]), facts["step_s"]
        return f"about {shown}, at {step_s:.2g} s a step on this machine now; validation and clustering add to it"
    if facts["h200_s"] is not None:
        return f"time: not timed here; on one H200 about {_duration(facts['h200_s'])}, by the rate in docs/lab.md"
    return "time: not known here; it is timed for the static encoder, and for any encoder that is here with a GPU"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _is_minilm(size: EncoderSize) -> bool:
    return (size.num_layers, size.dim, size.inner) == (6, 384, 1536)


def _activations(plan: Plan, settings: Settings, size: EncoderSize, bf16: bool, flash: bool) -> float:
    """What autograd keeps of the encoder: counted with BERT and DistilBERT, dropout on."""
    if size.num_layers == 0:  # a token's id and weight; a text's vector and its gradient
        return 32 * plan.batch_tokens + 16 * size.dim * (plan.batch_queries + plan.batch_labels)
    packed = settings.encoder.packed != "off"
    if bf16:
        a_token: float = (18 if packed else 34) * size.dim + 4 * size.inner
    else:
        a_token = 38 * size.dim + 8 * size.inner
    if not flash:
        a_token += 12 * size.heads * max(plan.query_tokens, plan.label_tokens)
    texts = plan.batch_queries + plan.batch_labels
    share = min(1.0, settings.training.texts_at_once / texts) if settings.training.texts_at_once else 1.0
    a_token = (1 if packed else PADDING) * size.num_layers * a_token + 12 * size.dim  # around the layers
    a_token += (2 if bf16 else 4) * size.inner  # gradients of the layer that is under way
    cast = 2 * size.num_layers * (4 * size.dim**2 + 2 * size.dim * size.inner) if bf16 else 0
    return share * a_token * plan.batch_tokens + cast + 16 * size.dim * texts


def _labels_of_a_batch(corpus: Corpus, settings: Settings, batch_queries: int) -> int:
    """How many different labels random queries draw; queries that are alike draw fewer."""
    train, data = corpus.split("train"), settings.data
    counts_L = np.bincount(train.positives.indices, minlength=len(corpus.labels))
    weights_L = inverse_propensity(counts_L, len(train), data.propensity_a, data.propensity_b)
    usable = np.flatnonzero(np.diff(train.positives.indptr))
    if len(usable) == 0:
        return 0
    rng = np.random.default_rng(0)
    queries = rng.choice(usable, min(batch_queries, len(usable)), replace=False)
    rows = train.positives[queries]
    sampler = PositiveSampler(rows, weights_L, settings.sampling.positives_per_query)
    more = label_source(train.positives, settings.sampling).draw(queries, rng)
    return len(batch_labels(sampler.draw(np.arange(len(queries)), rng), more))
