"""Labels that are added to the model and removed from it while it answers.

A change is made on a copy, which then takes the model's place: requests meet the labels of before or of after.
"""

from __future__ import annotations

import copy
from http import HTTPStatus
from typing import Any

from ..model.model import PrimeModel
from .bodies import NewLabels, OldLabels
from .current import Current
from .generation import Generation
from .refusal import Refusal


def add_labels(current: Current, new: NewLabels) -> dict[str, Any]:
    """Gives the new labels as they are listed from now on."""
    model = _copy(current.generation.model)
    uids = model.add_labels(
        [label.text or label.name for label in new.labels],
        [label.uid or label.name for label in new.labels],
        [label.name for label in new.labels],
        [label.queries for label in new.labels],
    )
    generation = _put(current, model, new.save)
    rows = [generation.row_of(uid) for uid in uids]
    return _answer(generation, [generation.label(row) for row in rows if row is not None], new.save)


def remove_labels(current: Current, old: OldLabels) -> dict[str, Any]:
    """Gives the labels that were removed."""
    before = current.generation
    rows = [before.row_of(uid) for uid in old.uids]
    model = _copy(before.model)
    model.remove_labels(old.uids)
    return _answer(_put(current, model, old.save), [before.label(row) for row in rows if row is not None], old.save)


def _copy(model: PrimeModel) -> PrimeModel:
    """Tensors are shared: a change replaces them and writes into none."""
    model = copy.copy(model)
    model.network = copy.copy(model.network)
    model.network._buffers = dict(model.network._buffers)
    model.network._parameters = dict(model.network._parameters)
    return model


def _put(current: Current, model: PrimeModel, save: bool) -> Generation:
    try:
        return current.change(model, save=save)
    except OSError as error:
        sentence = f"the model directory cannot be written ({error.strerror}); nothing was changed."
        raise Refusal(HTTPStatus.CONFLICT, sentence) from None


def _answer(generation: Generation, labels: list[dict[str, Any]], saved: bool) -> dict[str, Any]:
    return {"generation": generation.number, "labels": labels, "saved": saved}
