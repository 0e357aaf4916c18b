"""Code of the user's own: a setting like "my_losses:focal" names what is defined in a Python file.

It is imported only when the user named it: with `--set`, in a settings file, in Python, or by `allow`. The settings
that a model directory brings along are data; reading a model imports nothing that they name.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import UserError

ALLOWED_BY_ENVIRONMENT = "PRIMEXMC_OWN_CODE"  # names with commas between them, for verbs that read models
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_allowed: set[str] = set()


def is_own(value: Any) -> bool:
    """Whether this is written like "module:name"."""
    return isinstance(value, str) and _DOTTED.fullmatch(value) is not None


def allow(*names: str) -> None:
    """From now on these may be imported by this process; before `PrimeModel.load` for a model that needs them."""
    _allowed.update(names)


def allow_named(values: Mapping[str, Any]) -> None:
    """What the user's own settings name, by dotted key."""
    allow(*(value for value in values.values() if is_own(value)))


def own(name: str, setting: str) -> Any:
    """What "module:name" names; the current directory is searched, too."""
    from_environment = os.environ.get(ALLOWED_BY_ENVIRONMENT, "").split(",")
    if name not in _allowed and name not in map(str.strip, from_environment):
        raise UserError(
            f"{setting} is {name}, code that does not come with the model and is not imported unasked; if you trust "
            f"it, set the environment variable {ALLOWED_BY_ENVIRONMENT}={name}, or in Python call own_code.allow."
        )
    module, attribute = name.split(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UserError(f"{setting}: there is no module {module}; is {module}.py in this directory?") from None
    except AttributeError:
        raise UserError(f"{setting}: the module {module} has no {attribute}.") from None
