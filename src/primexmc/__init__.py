"""primexmc: extreme multi-label classification by label prototypes.

The public names are loaded when they are first used, so that `import primexmc` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "Prediction",
    "PrimeModel",
    "Settings",
    "UserError",
    "dynamic_margin_loss",
    "evaluate",
    "metrics",
    "train",
]

if TYPE_CHECKING:
    from .config import Settings as Settings
    from .data.corpus import Corpus as Corpus
    from .errors import UserError as UserError
    from .evaluation.evaluate import evaluate as evaluate
    from .evaluation.metrics import metrics as metrics
    from .losses.dynamic_margin import dynamic_margin_loss as dynamic_margin_loss
    from .model.model import Prediction as Prediction
    from .model.model import PrimeModel as PrimeModel
    from .training.train import train as train
else:
    _HOMES = {
        "Corpus": "data.corpus",
        "Prediction": "model.model",
        "PrimeModel": "model.model",
        "Settings": "config",
        "UserError": "errors",
        "dynamic_margin_loss": "losses.dynamic_margin",
        "evaluate": "evaluation.evaluate",
        "metrics": "evaluation.metrics",
        "train": "training.train",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
