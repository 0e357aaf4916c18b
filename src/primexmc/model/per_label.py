"""All that a model keeps of each label: changed aside, then put in its place at once.

Shapes: L labels, R chosen labels, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..data.corpus import Labels
from ..data.texts import Texts
from .centroids import Centroids

if TYPE_CHECKING:
    from .model import PrimeModel

IdArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PerLabel:
    """Rows that belong together; row i of each is label i."""

    labels: Labels
    label_counts_L: IdArray
    free_vector_of_L: Tensor
    centroids: Centroids
    prototypes_LD: Tensor
    trained_L: Tensor
    classifier_LD: Tensor | None = None

    @classmethod
    def of(cls, model: PrimeModel) -> PerLabel:
        return cls(
            model.labels,
            model.label_counts_L,
            model.network.free_vector_of_L,
            model.centroids,
            model.prototypes_LD,
            trained_labels(model),
            model.classifier_LD,
        )

    def take(self, rows_R: IdArray) -> PerLabel:
        """These labels, in this order."""
        at_R = torch.from_numpy(rows_R).to(self.prototypes_LD.device)
        labels, centroids = self.labels, self.centroids
        return PerLabel(
            Labels(*(Texts.of(column).take(rows_R) for column in (labels.uids, labels.names, labels.texts))),
            self.label_counts_L[rows_R],
            self.free_vector_of_L[at_R],
            Centroids(centroids.c_LD[at_R], centroids.count_L[at_R]),
            self.prototypes_LD[at_R],
            self.trained_L[at_R],
            None if self.classifier_LD is None else self.classifier_LD[at_R],
        )

    def joined(self, other: PerLabel) -> PerLabel:
        """These labels, then the others; not a bit of these changes."""
        ours, theirs = self.labels, other.labels
        one, two = self.centroids, other.centroids
        return PerLabel(
            Labels(
                Texts.of(ours.uids).joined(Texts.of(theirs.uids)),
                Texts.of(ours.names).joined(Texts.of(theirs.names)),
                Texts.of(ours.texts).joined(Texts.of(theirs.texts)),
            ),
            np.concatenate([self.label_counts_L, other.label_counts_L]),
            torch.cat([self.free_vector_of_L, other.free_vector_of_L]),
            Centroids(
                torch.cat([one.c_LD, two.c_LD]),
                torch.cat([one.count_L, two.count_L]),
            ),
            torch.cat([self.prototypes_LD, other.prototypes_LD]),
            torch.cat([self.trained_L, other.trained_L]),
            None if self.classifier_LD is None or other.classifier_LD is None
            else torch.cat([self.classifier_LD, other.classifier_LD]),
        )  # fmt: skip

    def replaced(self, rows_R: IdArray, others: PerLabel) -> PerLabel:
        """The same labels, with others in the place of some."""
        place_L = np.arange(len(self.labels))
        place_L[rows_R] = len(self.labels) + np.arange(len(rows_R))
        return self.joined(others).take(place_L)

    def put(self, model: PrimeModel) -> None:
        """These become the model's labels; whatever is made of them is made again when it is next asked for."""
        model.labels, model.label_counts_L = self.labels, self.label_counts_L
        model.network.free_vector_of_L, model.centroids = self.free_vector_of_L, self.centroids
        model.prototypes_LD, model.classifier_LD = self.prototypes_LD, self.classifier_LD
        model.trained_L = None if bool(self.trained_L.all()) else self.trained_L
        model.labels_changed()


def trained_labels(model: PrimeModel) -> Tensor:
    """Which labels were trained, and not added later."""
    L, device = len(model.labels), model.device
    return torch.ones(L, dtype=torch.bool, device=device) if model.trained_L is None else model.trained_L
