"""Service: all that the routes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from .aside import Aside
from .batcher import Batcher
from .current import Current
from .generation import Generation
from .keys import Keys
from .limits import Limits
from .metrics import Metrics
from .predictor import Item


@dataclass
class Service:
    current: Current
    batcher: Batcher[Item, bytes]
    aside: Aside
    metrics: Metrics
    keys: Keys
    limits: Limits
    draining: bool = False
    reload: Callable[[], object] = lambda: None  # from any thread; there once the server runs

    @property
    def generation(self) -> Generation:
        return self.current.generation


async def _service(request: Request) -> Service:
    """Not a plain function: FastAPI would run that in a thread, for every request."""
    service: Service = request.app.state.service
    return service


ServiceOf = Annotated[Service, Depends(_service)]


async def _may_change(request: Request, service: ServiceOf) -> None:
    service.keys.check_change(request.headers)


MayChange = Depends(_may_change)
