"""What the batcher's thread does: texts of many requests through the model at once, and their answers as JSON.

Rendering happens here, a text at a time, so that a large answer holds up nobody in the event loop.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .bodies import Question
from .generation import Generation


class Item(NamedTuple):
    """One text, the model that was there when it came, and what its answer may hold."""

    generation: Generation
    text: str
    top: int
    min_score: float
    without: frozenset[str]
    details: bool
    probability: bool


def items_of(question: Question, generation: Generation) -> list[Item]:
    """Raises a UserError where the model has no probabilities and the question asks for them."""
    model, probability = generation.model, question.probability
    if probability and model.calibration is None:
        model.calibrated(np.zeros((0, 1), dtype=np.float32))
    lowest = -math.inf if question.min_score is None else question.min_score
    without = frozenset(question.without)
    rest = (question.top, lowest, without, question.details, probability)
    return [Item(generation, text, *rest) for text in question.texts]


def answer_items(items: list[Item]) -> list[bytes]:
    """`{"labels": [...]}` for each item, in their order."""
    places = defaultdict[Generation, list[int]](list)
    for place, item in enumerate(items):
        places[item.generation].append(place)
    answers = [b""] * len(items)
    for generation, rows in places.items():
        top = max(items[place].top + len(items[place].without) for place in rows)
        ids_QK, scores_QK = generation.model.rank([items[place].text for place in rows], top)
        for place, ids_K, scores_K in zip(rows, ids_QK, scores_QK, strict=True):
            answers[place] = as_json({"labels": _labels(items[place], ids_K, scores_K)})
    return answers


def as_json(value: Any) -> bytes:
    """Label names may hold half a surrogate pair, too: it goes out as JSON says it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _labels(item: Item, ids_K: npt.NDArray[np.int64], scores_K: npt.NDArray[np.float32]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if not item.text or item.text.isspace():
        return found
    likely = item.generation.model.calibrated(scores_K[None])[0].tolist() if item.probability else None
    for rank, (label, score) in enumerate(zip(ids_K.tolist(), scores_K.tolist(), strict=True)):
        if label < 0 or score < item.min_score or len(found) == item.top:
            break
        about = item.generation.label(label)
        if about["uid"] not in item.without:
            scored = {"label": about["label"], "uid": about["uid"], "id": label, "score": round(score, 6)}
            if likely is not None:
                scored["probability"] = round(likely[rank], 4)
            found.append(about | scored if item.details else scored)
    return found
