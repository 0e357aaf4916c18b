"""What validation decides of a finished model beside its number of epochs: voices, probabilities, 8-bit numbers."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_matrix

from ..data.corpus import Split
from ..evaluation.calibrate import calibrate
from ..evaluation.int8_cost import int8_cost
from ..fusion.blend import Blend
from ..fusion.lexical import Lexical
from ..model.calibration import Calibration
from ..model.mixture import Mixture
from ..model.model import PrimeModel
from .choose_blend import choose_blend
from .choose_mixture import mix, mix_as
from .data import TrainingData
from .fit_lexical import fit_lexical


def decide(model: PrimeModel, data: TrainingData, held_out: Split) -> dict[str, Any]:
    """Gives the model what held-out queries decide; the same as plain values, for a model that is made again.

    `data` is what it was trained on.
    """
    mix(model, data.label_tokens, held_out)
    fusion = model.settings.fusion
    if fusion.memory or fusion.lexical or model.classifier_LD is not None:
        model.lexical = _lexical(model, data.filtered)
        model.blend = choose_blend(model, held_out)
    model.calibrations = calibrate(model, held_out)
    cost = int8_cost(model, held_out)
    if cost is not None:
        model.facts["int8_cost"] = cost
    return {
        "mixture": list(model.mixture),
        "blend": None if model.blend is None else model.blend.to_dict(),
        "calibrations": {mode: one.to_dict() for mode, one in model.calibrations.items()},
        "int8_cost": cost,
    }


def as_decided(model: PrimeModel, data: TrainingData, decided: dict[str, Any]) -> None:
    """For a model that has seen all queries, so that nothing is held out to decide by."""
    mix_as(model, data.label_tokens, Mixture(*decided.get("mixture", ())))
    if decided.get("blend") is not None:
        model.lexical, model.blend = _lexical(model, data.filtered), Blend.from_dict(decided["blend"])
    model.calibrations = {mode: Calibration.from_dict(one) for mode, one in decided["calibrations"].items()}
    if decided.get("int8_cost") is not None:
        model.facts["int8_cost"] = decided["int8_cost"]


def _lexical(model: PrimeModel, filtered: csr_matrix | None) -> Lexical | None:
    if not model.settings.fusion.lexical or model.memory is None:
        return None
    return fit_lexical(model, model.memory, filtered)
