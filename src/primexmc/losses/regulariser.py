"""R: a prototype must be nearer to its queries than its label text is, and farther from the others.

Shapes: Q queries, M labels of the batch, k hard negatives.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import relu

from .negatives import Negatives, hardest_negatives
from .positives import Positives, as_positives
from .similarities import Similarities
from .terms import at_least_float32


def prototype_regulariser(
    s_text_QM: Tensor,
    s_proto_QM: Tensor,
    positive_QM: Tensor | Positives,
    *,
    margin: float = 0.1,
    num_negatives: int = 100,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`(R_p + R_n) / 2`, each the mean over its violators of a hinge, 0 when nothing violates.

    One positive per query, drawn anew (a query without any has no part in R_p), and the `num_negatives` negatives that
    are most similar by prototype. Gradient flows into both similarities.
    """
    positives = as_positives(positive_QM, s_proto_QM)
    if s_text_QM.shape != s_proto_QM.shape:
        raise ValueError(
            f"text similarities {tuple(s_text_QM.shape)} and prototype ones {tuple(s_proto_QM.shape)} differ"
        )
    if s_proto_QM.numel() == 0:
        return (s_text_QM + s_proto_QM).float().sum()
    negatives = hardest_negatives(s_proto_QM, positives, num_negatives)
    text, proto = Similarities.of_matrix(s_text_QM), Similarities.of_matrix(s_proto_QM)
    return regulariser_term(text, proto, positives, negatives, margin, generator)


def regulariser_term(
    text: Similarities,
    proto: Similarities,
    positives: Positives,
    negatives: Negatives,
    margin: float,
    generator: torch.Generator | None,
) -> Tensor:
    """R against given negatives."""
    index = torch.cat([positives.draw(generator)[:, None], negatives.index_Qk], 1)
    ahead = at_least_float32(text.pick(index)) - at_least_float32(proto.pick(index))
    r_p = _mean_over_violators(margin + ahead[:, 0], positives.count_Q > 0)
    r_n = _mean_over_violators(margin - ahead[:, 1:], negatives.valid_Qk)
    return (r_p + r_n) / 2


def _mean_over_violators(x: Tensor, exists: Tensor) -> Tensor:
    hinge = relu(x) * exists
    return hinge.sum() / (hinge > 0).sum().clamp(min=1)
