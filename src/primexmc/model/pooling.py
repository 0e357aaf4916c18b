"""How the vectors of a text's tokens become one vector.

Shapes: B texts, S positions of a padded rectangle, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..own_code import own

Pooling = Callable[[Tensor, Tensor], Tensor]  # hidden_BSD and mask_BS (True where there is a token) -> h_BD


def pooling_of(name: str) -> Pooling:
    """What `encoder.pooling` names, one's own included."""
    pooling: Pooling = POOLINGS.get(name) or own(name, "encoder.pooling")
    return pooling


def _mean(hidden_BSD: Tensor, mask_BS: Tensor) -> Tensor:
    mask_BS1 = mask_BS[:, :, None].float()
    return (hidden_BSD * mask_BS1).sum(1) / mask_BS1.sum(1).clamp(min=1)


def _first(hidden_BSD: Tensor, mask_BS: Tensor) -> Tensor:
    return hidden_BSD[:, 0]


POOLINGS: dict[str, Pooling] = {"mean": _mean, "cls": _first}
