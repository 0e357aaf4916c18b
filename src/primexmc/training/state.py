"""All that the training loop changes, in one place: it is saved and restored here and nowhere else.

Shapes: N training queries, L labels, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..model.centroids import Centroids
from ..model.network import PrimeNetwork

IntArray = npt.NDArray[np.int64]


LARGEST_FLOAT32_BANK = 1 << 30  # bytes


def bank_type(num_queries: int, dim: int) -> torch.dtype:
    """The query bank's numbers: half precision where in float32 it would be more than 1 GiB. Its vectors have length 1
    and are stale anyway; clusters and centroids are computed from it in float32."""
    return torch.float16 if 4 * num_queries * dim > LARGEST_FLOAT32_BANK else torch.float32


@dataclass
class Best:
    """The best epoch so far by validation, with the parameters that it ended with."""

    score: float = -1.0
    epoch: int = 0  # epochs done when it was measured; 0 = none yet
    scores: dict[str, float] = field(default_factory=dict)
    network: dict[str, Tensor] = field(default_factory=dict)


@dataclass
class TrainingState:
    """Everything that one phase of training changes."""

    network: PrimeNetwork
    optimiser: torch.optim.Optimizer
    centroids: Centroids
    query_bank_ND: Tensor  # each query's normalised embedding when it was last in a batch
    order_N: IntArray  # this epoch's queries, in order
    cuts: IntArray  # where the order is cut into batches
    cluster_of_N: IntArray  # of the last refresh; empty before the first one
    totals: Tensor  # this epoch's sums of loss, violators and steps
    epoch: int = 0  # epochs completed
    position: int = 0  # batches of this epoch done
    step: int = 0
    seconds: float = 0.0
    best: Best = field(default_factory=Best)
    mined_NK: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    """Each query's nearest wrong labels at the last search; empty before the first one."""

    @property
    def device(self) -> torch.device:
        return self.query_bank_ND.device

    def see(self, queries_Q: Tensor, q_QD: Tensor) -> None:
        """Puts what the queries look like now into the bank."""
        self.query_bank_ND[queries_Q] = q_QD.to(self.query_bank_ND.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """What `restore` needs besides `numbers`."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.network.items()}
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(value) for name, value in moments.items()}
        tensors |= {"centroids": self.centroids.c_LD, "has_centroid": self.centroids.has_L, "bank": self.query_bank_ND}
        tensors |= {"order": torch.from_numpy(self.order_N), "cuts": torch.from_numpy(self.cuts)}
        tensors |= {"clusters": torch.from_numpy(self.cluster_of_N), "totals": self.totals}
        tensors["mined"] = torch.from_numpy(self.mined_NK)
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return tensors

    def numbers(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "position": self.position,
            "step": self.step,
            "seconds": self.seconds,
            "best_score": self.best.score,
            "best_epoch": self.best.epoch,
            "best_scores": self.best.scores,
        }

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Puts everything back as `tensors` and `numbers` found it."""
        self.network.load_state_dict(_below(tensors, "network."))
        self.best = Best(numbers["best_score"], numbers["best_epoch"], numbers["best_scores"], _below(tensors, "best."))
        self._restore_optimiser(_below(tensors, "optimiser."))
        self.centroids.c_LD.copy_(tensors["centroids"])
        self.centroids.count_L.copy_(tensors["has_centroid"])
        self.query_bank_ND.copy_(tensors["bank"])
        self.order_N, self.cuts = tensors["order"].numpy(), tensors["cuts"].numpy()
        self.cluster_of_N = tensors["clusters"].numpy()
        self.mined_NK = tensors["mined"].numpy() if "mined" in tensors else self.mined_NK
        self.totals.copy_(tensors["totals"])
        self.epoch, self.position, self.step = numbers["epoch"], numbers["position"], numbers["step"]
        self.seconds = numbers["seconds"]
        torch.set_rng_state(tensors["random.cpu"])
        if self.device.type == "cuda" and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)

    def _restore_optimiser(self, moments: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in moments.items():
            index, name = key.split(".", 1)
            state.setdefault(int(index), {})[name] = value
        self.optimiser.load_state_dict({"state": state, "param_groups": self.optimiser.state_dict()["param_groups"]})


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
