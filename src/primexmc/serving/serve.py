"""serve(): a model at an address until somebody says stop."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from ..errors import UserError
from .app import make_app
from .current import Current
from .keys import Keys
from .limits import DEFAULT_LIMITS, Limits
from .quiet import settle, switch_often
from .service import Service

BACKLOG = 2048
DRAIN_S = 30


def serve(
    path: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    device: str = "auto",
    key: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    say: Callable[[str], None] = print,
) -> None:
    """Loads the model, listens, and answers until SIGTERM or Ctrl-C; requests that run get their answers."""
    current = Current(path, device, alone=True)
    with listen(host, port) as listening:
        address = f"[{host}]" if ":" in host else host
        line = f"serving {path} at http://{address}:{listening.getsockname()[1]}"
        server = Server(*make_app(current, Keys(key, host), limits), ready=lambda: say(line))
        settle()
        switch_often()
        with _signals(server):
            server.run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise UserError(f"cannot listen at {host}:{port}: {reason}.") from None
    # Head and body of an answer are two writes: without this the second waits 40 ms for the first's acknowledgement.
    # asyncio sees to it for sockets that say they are TCP; one from create_server does not say so.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class Server(uvicorn.Server):
    """uvicorn without lines of its own: ours say no more than they should."""

    def __init__(self, app: ASGIApp, service: Service, ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                http="h11",  # it bounds a request's head, and passes on methods that nobody knows
                loop="asyncio",
                lifespan="on",
                timeout_graceful_shutdown=DRAIN_S,
            )
        )
        self.service, self._ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def stop(self) -> None:
        """No new requests; the second time, no old ones either."""
        self.force_exit = self.should_exit
        self.service.draining = self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are taken below, and only where a server is the whole process."""
        yield


@contextlib.contextmanager
def _signals(server: Server) -> Iterator[None]:
    """SIGTERM and Ctrl-C end it, SIGHUP reads the model again."""
    takers = {
        signal.SIGTERM: lambda *_: server.stop(),
        signal.SIGINT: lambda *_: server.stop(),
        signal.SIGHUP: lambda *_: server.service.reload(),
    }
    before = {number: signal.signal(number, taker) for number, taker in takers.items()}
    try:
        yield
    finally:
        for number, taker in before.items():
            signal.signal(number, taker)
