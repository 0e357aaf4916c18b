"""`primexmc serve`: a model over HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import add_device_option

SENTENCE = "answer over HTTP, for other programs"
EPILOG = """POST /predict with {"texts": ["..."], "top": 5} gives
{"results": [{"labels": [{"label": ..., "uid": ..., "id": ..., "score": ...}, ...]}, ...]};
GET /health and GET /info tell how it is. Ctrl-C or SIGTERM ends after the requests that are running.

example:
  primexmc serve my-model
  curl -s localhost:8000/predict -d '{"texts": ["wireless mouse"], "top": 3}'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen at; 0 takes a free one (8000)")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..errors import UserError
    from ..model.model import PrimeModel
    from ..serving.server import make_server, serve_until_stopped

    if not 0 <= arguments.port <= 65535:
        raise UserError(f"--port is between 0 and 65535, not {arguments.port}.")
    model = PrimeModel.load(arguments.model, arguments.device)
    try:
        server = make_server(model, arguments.host, arguments.port)
    except OSError as error:
        raise UserError(f"cannot listen at {arguments.host}:{arguments.port}: {error.strerror or error}.") from None
    host, port = server.server_address[:2]
    print(f"serving {arguments.model} at http://{host!s}:{port}", flush=True)
    serve_until_stopped(server)
    return 0
