"""POST /predict and POST /explain."""

from __future__ import annotations

import functools
from typing import Any

from fastapi import APIRouter, Response

from ..model.explanation import MAX_WORDS, Explanation, explain
from ..model.near_queries import NearQuery
from .bodies import Predictions, Question, Why, WhyQuestion
from .generation import Generation
from .predictor import as_json, items_of
from .refusal import not_found
from .service import ServiceOf

router = APIRouter(tags=["predict"])
MAX_SHOWN_CHARS, MAX_SHOWN_LABELS = 1000, 20


@router.post("/predict", responses={200: {"model": Predictions}})
async def predict(question: Question, service: ServiceOf) -> Response:
    """Each text's best labels, best first, with the scores of the model's mode."""
    generation = service.generation
    answers = await service.batcher.submit(items_of(question, generation))
    content = b'{"results":[' + b",".join(answers) + b"]}"
    return Response(content, media_type="application/json", headers={"x-generation": str(generation.number)})


@router.post("/explain", responses={200: {"model": Why}})
async def why(question: WhyQuestion, service: ServiceOf) -> Response:
    """Why a text gets a label: what prototype, classifier, memory, words and judge add to the score, what text,
    centroid and free vector do within the prototype, what each word of the text does, and the nearest training
    queries."""
    return Response(
        await service.aside.run(functools.partial(_explain, service.generation, question)),
        media_type="application/json",
    )


def _explain(generation: Generation, question: WhyQuestion) -> bytes:
    row = generation.row_of(question.uid) if question.uid is not None else question.id
    if row is None or row >= len(generation.model.labels):
        raise not_found("there is no such label.")
    found = explain(generation.model, question.text, row, question.queries, words=question.words)
    return as_json({"label": generation.label_with_text(row), **_rounded(found, generation)})


def _rounded(found: Explanation, generation: Generation) -> dict[str, Any]:
    return {
        "score": round(found.score, 6),
        "voices": [{"voice": voice, "share": round(share, 6)} for voice, share in found.voices],
        "parts": [
            {"part": part, "share": round(share, 6), "without": None if without is None else round(without, 6)}
            for part, share, without in found.parts
        ],
        "words": [{"word": word[:100], "change": round(change, 6)} for word, change in found.words],
        "lexical": {
            "bias": round(found.bias, 6),
            "words": [{"word": word[:100], "adds": round(adds, 6)} for word, adds in found.word_votes[:MAX_WORDS]],
        },
        "nearest": [_near(query, generation) for query in found.nearest],
        "nearest_with_label": [_near(query, generation) for query in found.nearest_with_label],
    }


def _near(query: NearQuery, generation: Generation) -> dict[str, Any]:
    names = generation.model.labels.names
    return {
        "text": query.text[:MAX_SHOWN_CHARS],
        "score": round(query.score, 6),
        "has_label": query.has_label,
        "adds": round(query.adds, 6),
        "labels": [names[row] for row in query.label_ids[:MAX_SHOWN_LABELS]],
    }
