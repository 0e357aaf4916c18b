"""A relation: rows and columns that meet in a batch, and which of their pairs are true."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from .log_sum_exp import fits_at_once, lse_in_parts, lse_of_matrix
from .negatives import Negatives, hardest_negatives
from .positives import Positives
from .similarities import Similarities


@dataclass(frozen=True, eq=False)
class Relation:
    """Vectors of length 1 and the true pairs among them; all that a loss is given.

    What several losses need of it (similarities, hardest negatives) is computed when first asked for, and once.
    """

    rows_QD: Tensor
    columns_MD: Tensor
    positives: Positives
    turned: Relation | None = None  # the same pairs seen from the columns, where that is a relation, too
    _found: dict[int, Negatives] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def matrix_QM(self) -> Tensor:
        """All similarities."""
        return self.rows_QD @ self.columns_MD.T if self.turned is None else self.turned.matrix_QM.T

    @cached_property
    def similarities(self) -> Similarities:
        """Similarities for losses that look at few of them."""
        return Similarities.of_vectors(self.rows_QD, self.columns_MD, self.matrix_QM)

    def hardest_negatives(self, num_negatives: int) -> Negatives:
        """The most similar columns of each row that are not true."""
        if num_negatives not in self._found:
            self._found[num_negatives] = hardest_negatives(self.matrix_QM, self.positives, num_negatives)
        return self._found[num_negatives]

    def lse_and_positives(self, temperature: float) -> tuple[Tensor, Tensor]:
        """Of similarity / temperature: each row's log-sum-exp over its negatives, and the true pairs.

        Where the matrix would be large it is never there as a whole.
        """
        if fits_at_once(self.rows_QD, self.columns_MD):
            return lse_of_matrix(self.matrix_QM, self.positives, temperature)
        return lse_in_parts(self.rows_QD, self.columns_MD, self.positives, temperature)
