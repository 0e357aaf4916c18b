"""The labels: looking for them, looking around one, adding and removing."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Response

from ..data.frequency import BUCKETS
from .bodies import Bucket, Changed, LabelDetail, LabelPage, Neighbours, NewLabels, OldLabels
from .changes import add_labels, remove_labels
from .generation import Generation
from .predictor import as_json
from .refusal import not_found
from .service import MayChange, ServiceOf

router = APIRouter(prefix="/labels", tags=["labels"])
Id = Annotated[int, Path(ge=0, lt=2**31, description="the label's row; it may change when labels are removed")]


@router.get("", responses={200: {"model": LabelPage}})
async def labels(
    service: ServiceOf,
    q: Annotated[str, Query(max_length=200, description="words that the name holds")] = "",
    bucket: Annotated[Bucket | None, Query(description="how often it was trained")] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Response:
    """Labels by name, the most frequent first; all of them without `q`."""
    found = await service.aside.run(functools.partial(_find, service.generation, q, bucket, offset, limit))
    return _json(found)


@router.get("/{id}", responses={200: {"model": LabelDetail}})
async def label(service: ServiceOf, id: Id) -> Response:
    """One label with its text."""
    generation = service.generation
    return _json(generation.label_with_text(_known(generation, id)))


@router.get("/{id}/neighbours", responses={200: {"model": Neighbours}})
async def neighbours(service: ServiceOf, id: Id, top: Annotated[int, Query(ge=1, le=200)] = 10) -> Response:
    """The labels whose prototypes lie nearest to a label's own."""
    generation = service.generation
    _known(generation, id)
    return _json(await service.aside.run(functools.partial(_neighbours, generation, id, top)))


@router.post("", dependencies=[MayChange], responses={200: {"model": Changed}})
async def add(new: NewLabels, service: ServiceOf) -> Response:
    """New labels, without training: they are predicted from the next request on."""
    return _json(await service.aside.run(functools.partial(add_labels, service.current, new)))


@router.post("/remove", dependencies=[MayChange], responses={200: {"model": Changed}})
async def remove(old: OldLabels, service: ServiceOf) -> Response:
    """Labels that are not to be predicted any more. The ids of others may change, their uids never."""
    return _json(await service.aside.run(functools.partial(remove_labels, service.current, old)))


def _find(generation: Generation, q: str, bucket: str | None, offset: int, limit: int) -> dict[str, Any]:
    among_L = None if bucket is None else generation.bucket_L == BUCKETS.index(bucket)
    found = generation.names.find(q, among_L)
    shown = found[offset : offset + limit].tolist()
    return {"total": len(found), "labels": [generation.label(row) for row in shown]}


def _neighbours(generation: Generation, id: int, top: int) -> dict[str, Any]:
    z_1D = generation.model.prototypes_LD[id : id + 1].float().cpu().numpy()
    ids_1K, scores_1K = generation.model.search(np.ascontiguousarray(z_1D), top + 1)
    near = [(row, score) for row, score in zip(ids_1K[0].tolist(), scores_1K[0].tolist(), strict=True) if row >= 0]
    return {
        "label": generation.label_with_text(id),
        "neighbours": [generation.label(row) | {"score": round(score, 6)} for row, score in near if row != id][:top],
    }


def _known(generation: Generation, id: int) -> int:
    if id >= len(generation.model.labels):
        raise not_found("there is no label with this id.")
    return id


def _json(value: dict[str, Any]) -> Response:
    return Response(as_json(value), media_type="application/json")
