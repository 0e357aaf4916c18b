"""What training makes small: one idea a file."""

from __future__ import annotations

from .contrastive import contrastive_loss
from .decoupled_softmax import decoupled_softmax_loss
from .dynamic_margin import dynamic_margin_loss
from .objective import Objective
from .positives import Positives
from .regulariser import prototype_regulariser

__all__ = [
    "Objective",
    "Positives",
    "contrastive_loss",
    "decoupled_softmax_loss",
    "dynamic_margin_loss",
    "prototype_regulariser",
]
