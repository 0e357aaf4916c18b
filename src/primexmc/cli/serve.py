"""`primexmc serve`: a model over HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import add_device_option

SENTENCE = "answer over HTTP: a page for people, an interface for programs"
EPILOG = """The page is at /, the interface is told at /docs. POST /predict with {"texts": ["..."], "top": 5} gives
{"results": [{"labels": [{"label": ..., "uid": ..., "id": ..., "score": ...}, ...]}, ...]}.
A new model in the directory is taken over without a pause; SIGHUP or POST /reload does it at once. Ctrl-C or
SIGTERM ends after the requests that are running. With PRIMEXMC_API_KEY in the environment, or --api-key-file,
whoever asks needs the key. Needs pip install "primexmc[serve]".

examples:
  primexmc serve my-model
  curl -s localhost:8000/predict -d '{"texts": ["wireless mouse"], "top": 3}'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen at; 0 takes a free one (8000)")
    parser.add_argument("--api-key-file", metavar="FILE", type=Path, help="a file with the key that requests must have")
    parser.add_argument("--batch", metavar="N", type=int, help="texts that the model sees at once, at most (32)")
    parser.add_argument("--queue", metavar="N", type=int, help="requests that may wait; past it 429 (32)")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="for one answer, waiting included (30)")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..errors import UserError

    if not 0 <= arguments.port <= 65535:
        raise UserError(f"--port is between 0 and 65535, not {arguments.port}.")
    limits = {"batch_texts": arguments.batch, "waiting_requests": arguments.queue, "answer_s": arguments.timeout}
    for option, value in zip(("--batch", "--queue", "--timeout"), limits.values(), strict=True):
        if value is not None and not value > 0:
            raise UserError(f"{option} is more than 0, not {value}.")
    try:
        from ..serving.keys import read_key
        from ..serving.limits import Limits
        from ..serving.serve import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {
            "fastapi",
            "uvicorn",
            "pydantic",
            "prometheus_client",
            "starlette",
        }:
            raise
        raise UserError(f'serving needs {error.name}, which is not installed: pip install "primexmc[serve]".') from None
    serve(
        arguments.model,
        host=arguments.host,
        port=arguments.port,
        device=arguments.device,
        key=read_key(arguments.api_key_file),
        limits=Limits(**{name: value for name, value in limits.items() if value is not None}),
        say=lambda line: print(line, flush=True),
    )
    return 0
