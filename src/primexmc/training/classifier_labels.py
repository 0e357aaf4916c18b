"""Which labels a query is compared with while the classifier learns: those of its batch, or all there are.

Shapes: N training queries, Q queries of a batch, M labels of a batch, L labels, D dimensions, E true pairs.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional

from ..config import Settings
from ..data.propensity import inverse_propensity
from ..losses.decoupled_softmax import decoupled_terms
from ..losses.log_sum_exp import lse_in_parts
from ..losses.objective import Objective
from ..losses.positives import Positives
from ..model.token_batch import to_device
from ..sampling.positives import PositiveSampler, batch_labels, batch_positives, label_weights
from .row_adam import RowAdam

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Met:
    """A batch: its queries, the labels that they are compared with (None: all), and who is true for whom."""

    queries_Q: Tensor
    labels_M: Tensor | None
    positives: Positives


class ClassifierLabels(Protocol):
    """A way to learn W: `make` prepares a batch on the CPU, `learn` changes W by it and gives back the loss."""

    def make(self, queries: IntArray, step: int) -> Met: ...
    def learn(self, q_QD: Tensor, met: Met, learning_rate: float) -> Tensor: ...


class SampledLabels:
    """A few labels drawn for each query; they are the batch's negatives for one another, by a fixed margin.

    Only their rows of W move: Adam's moments of the others wait.
    """

    def __init__(self, w_LD: Tensor, positives: csr_matrix, filtered: csr_matrix | None, settings: Settings) -> None:
        data, chosen = settings.data, settings.classifier
        counts_L = np.bincount(positives.indices, minlength=positives.shape[1])
        weights_L = inverse_propensity(counts_L, positives.shape[0], data.propensity_a, data.propensity_b)
        weights_L = label_weights(positives, weights_L, settings.sampling)
        self.sampler = PositiveSampler(positives, weights_L, chosen.positives_per_query)
        self.w_LD, self.positives, self.filtered, self.seed = w_LD, positives, filtered, settings.training.seed
        loss = dataclasses.replace(
            settings.loss,
            name="margin",
            margin_min=chosen.margin,
            margin_max=chosen.margin,
            text_weight=1.0,
            reverse_weight=0.0,
        )
        self.objective = Objective(loss, prototypes=False)
        self.generator = torch.Generator(w_LD.device).manual_seed(self.seed)
        self.adam = RowAdam(w_LD)

    def make(self, queries: IntArray, step: int) -> Met:
        device = self.w_LD.device
        labels = batch_labels(self.sampler.draw(queries, np.random.default_rng([self.seed, step])))
        positives = batch_positives(self.positives, queries, labels)
        filtered = None if self.filtered is None else batch_positives(self.filtered, queries, labels)
        return Met(
            to_device(torch.from_numpy(queries), device),
            to_device(torch.from_numpy(labels), device),
            Positives.from_csr(positives, device, filtered=filtered),
        )

    def learn(self, q_QD: Tensor, met: Met, learning_rate: float) -> Tensor:
        loss, by_w_MD = self.gradient(q_QD, met)
        assert met.labels_M is not None
        self.adam.step(met.labels_M, by_w_MD, learning_rate)
        return loss

    def gradient(self, q_QD: Tensor, met: Met) -> tuple[Tensor, Tensor]:
        """The loss, and its gradient by the batch's rows of W."""
        w_MD = self.w_LD[met.labels_M].requires_grad_()
        unit_MD = functional.normalize(w_MD, dim=1)
        loss, _ = self.objective(q_QD, unit_MD, None, met.positives, met.positives, self.generator)
        return loss.detach(), torch.autograd.grad(loss, w_MD)[0]


class AllLabels:
    """Every label, by the decoupled softmax: products pass by in parts, once for the sums and once for the gradient."""

    def __init__(
        self, w_LD: Tensor, positives: csr_matrix, filtered: csr_matrix | None, settings: Settings, *, bf16: bool
    ) -> None:
        self.w_LD, self.positives, self.filtered, self.bf16 = w_LD, positives, filtered, bf16
        self.temperature = settings.classifier.temperature
        self.adam = torch.optim.Adam([w_LD], fused=True)

    def make(self, queries: IntArray, step: int) -> Met:
        device = self.w_LD.device
        filtered = None if self.filtered is None else self.filtered[queries]
        positives = Positives.from_csr(self.positives[queries], device, filtered=filtered)
        return Met(to_device(torch.from_numpy(queries), device), None, positives)

    def learn(self, q_QD: Tensor, met: Met, learning_rate: float) -> Tensor:
        w_LD = self.w_LD.detach().requires_grad_()
        loss = softmax_over_all(q_QD, w_LD, met.positives, self.temperature, bf16=self.bf16)
        (self.w_LD.grad,) = torch.autograd.grad(loss, w_LD)
        self.adam.param_groups[0]["lr"] = learning_rate
        self.adam.step()
        return loss.detach()


def softmax_over_all(
    q_QD: Tensor,
    w_LD: Tensor,
    positives: Positives,
    temperature: float,
    columns_at_once: int | None = None,
    *,
    bf16: bool,
) -> Tensor:
    """The decoupled softmax of queries against all rows of W by cosine; no Q x L matrix is kept."""
    unit_LD = functional.normalize(w_LD, dim=1)
    sums_and_pairs = lse_in_parts(q_QD, unit_LD, positives, temperature, columns_at_once, bf16=bf16)
    return decoupled_terms(*sums_and_pairs, positives).loss
