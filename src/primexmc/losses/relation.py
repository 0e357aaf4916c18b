"""A relation: rows and columns that meet in a batch, and which of their pairs are true."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from .negatives import Negatives, hardest_negatives
from .positives import Positives
from .similarities import Similarities


@dataclass(frozen=True, eq=False)
class Relation:
    """Vectors of length 1, their similarities `matrix_QM = rows_QD @ columns_MD.T`, and the true pairs.

    What several losses need of it (the hardest negatives) is looked for once.
    """

    rows_QD: Tensor
    columns_MD: Tensor
    matrix_QM: Tensor
    positives: Positives
    _found: dict[int, Negatives] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def similarities(self) -> Similarities:
        """Similarities for losses that look at few of them."""
        return Similarities.of_vectors(self.rows_QD, self.columns_MD, self.matrix_QM)

    def hardest_negatives(self, num_negatives: int) -> Negatives:
        """The most similar columns of each row that are not true."""
        if num_negatives not in self._found:
            self._found[num_negatives] = hardest_negatives(self.matrix_QM, self.positives, num_negatives)
        return self._found[num_negatives]
