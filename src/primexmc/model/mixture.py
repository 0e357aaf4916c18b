"""The finished prototype: what the network makes of a label, and beside it the label's text and centroid as they are.

Training compares queries with prototypes and with label texts; a sum of both ranks better than either where texts say
much. A query's cosines with the parts, weighted and added up, are its product with the weighted sum of the vectors, so
one vector a label is still all that is searched.
Shapes: M labels, D dimensions.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional


class Mixture(NamedTuple):
    """How much text and centroid count where the network's prototype counts 1; chosen on validation."""

    text: float = 0.0
    centroid: float = 0.0

    @property
    def total(self) -> float:
        return 1 + self.text + self.centroid

    def of(self, z_MD: Tensor, h_MD: Tensor, c_MD: Tensor) -> Tensor:
        """The weighted mean of prototypes (normalised), label texts and centroids (both made so here); a label without
        a centroid has zeros for it."""
        if self == NO_MIXTURE:
            return z_MD
        text_MD, centroid_MD = (functional.normalize(x_MD.to(z_MD), dim=1) for x_MD in (h_MD, c_MD))
        return (z_MD + self.text * text_MD + self.centroid * centroid_MD) / self.total


NO_MIXTURE = Mixture()
