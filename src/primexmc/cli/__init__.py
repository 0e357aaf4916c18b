"""The command line: verbs that are a few lines each over the Python interface. Heavy imports wait until a verb runs."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from ..errors import UserError
from .notes import as_notes
from .parser import parse

INTERRUPTED = 130  # what a shell reports for Ctrl-C


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code: 0, 2 for what the user can mend, 130 when it was stopped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with as_notes():
            arguments = parse(sys.argv[1:] if argv is None else list(argv))
            code: int = arguments.run(arguments)
            sys.stdout.flush()
            return code
    except SystemExit as finished:  # --help and --version
        return finished.code if isinstance(finished.code, int) else 0
    except BrokenPipeError:  # the reader has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "stopped.", INTERRUPTED)
    except UserError as error:
        return _say(f"error: {error}", 2)
    except OSError as error:
        return _say(f"error: {_place(error)}{error.strerror or error}.", 2)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's; importing it to ask would take seconds
            raise
        return _say("error: the GPU's memory is full; lower training.batch_size, or use another --device.", 2)


def _say(message: str, code: int) -> int:
    if os.environ.get("PRIMEXMC_DEBUG"):
        traceback.print_exc()
    print(f"primexmc: {message}", file=sys.stderr)
    return code


def _place(error: OSError) -> str:
    return f"{error.filename}: " if error.filename else ""
