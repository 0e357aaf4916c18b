"""How the server and its model are: for load balancers, monitors and the page."""

from __future__ import annotations

import dataclasses
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from .bodies import Generations, Status
from .predictor import as_json
from .refusal import Refusal
from .service import MayChange, ServiceOf

router = APIRouter(tags=["state"])


@router.get("/health", responses={200: {"model": Status}})
async def health() -> Response:
    """The process is alive."""
    return _json({"status": "ok"})


@router.get("/ready", responses={200: {"model": Status}, 503: {"description": "it is about to end"}})
async def ready(service: ServiceOf) -> Response:
    """It has a model and takes requests."""
    if service.draining:
        raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the server is about to end.", {"Retry-After": "5"})
    return _json({"status": "ok"})


@router.get("/info")
async def info(service: ServiceOf) -> dict[str, Any]:
    """The model, the limits, and what can be done here."""
    generation = service.generation
    model = generation.model
    can = {
        "change_labels": service.keys.may_change,
        "near_queries": model.memory is not None,
        "probability": model.calibration is not None,
    }
    return {**generation.info(), "can": can, "limits": dataclasses.asdict(service.limits)}


@router.get("/learning")
async def learning(service: ServiceOf) -> dict[str, list[dict[str, Any]]]:
    """Rows of the model's metrics.jsonl: how training went."""
    return {"rows": service.generation.learning()}


@router.get("/examples")
async def examples(service: ServiceOf) -> dict[str, list[str]]:
    """A few of the model's training texts, to try it with."""
    return {"texts": service.generation.examples()}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(service: ServiceOf) -> Response:
    """For Prometheus."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.post("/reload", dependencies=[MayChange], responses={200: {"model": Generations}})
async def reload(service: ServiceOf) -> Response:
    """Reads the model directory again; requests go on with the old model until the new one is there."""
    generation = await service.aside.run(service.current.load)
    return _json({"generation": generation.number})


def _json(value: dict[str, Any]) -> Response:
    return Response(as_json(value), media_type="application/json")
