"""The finished prototype: what the network makes of a label, and beside it the label's text and centroid as they are.

Training compares queries with prototypes and with label texts; a sum of both ranks better than either where texts say
much. A query's cosines with the parts, weighted and added up, are its product with the weighted sum of the vectors, so
one vector a label is still all that is searched.
Shapes: M labels, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor
from torch.nn import functional


class Mixture(NamedTuple):
    """How much text and centroid count where the network's prototype counts 1; chosen on validation."""

    text: float = 0.0
    centroid: float = 0.0

    @classmethod
    def from_list(cls, weights: Sequence[float]) -> Mixture:
        """From JSON; a TypeError or ValueError where these are no weights. Of models of before there are none."""
        mixture = cls(*map(float, weights))
        if not (np.isfinite(mixture).all() and min(mixture) >= 0):
            raise ValueError(f"its weights are {list(weights)}")
        return mixture

    def of(self, z_MD: Tensor, h_MD: Tensor, c_MD: Tensor) -> Tensor:
        """The weighted mean of prototypes (normalised), label texts and centroids (both made so here); a label without
        a centroid has zeros for it."""
        if self == NO_MIXTURE:
            return z_MD
        text_MD, centroid_MD = (functional.normalize(x_MD.to(z_MD), dim=1) for x_MD in (h_MD, c_MD))
        return (z_MD + self.text * text_MD + self.centroid * centroid_MD) / (1 + self.text + self.centroid)


NO_MIXTURE = Mixture()
