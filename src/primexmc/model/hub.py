"""Models on the Hugging Face hub: `hf://owner/name` in place of a directory. Only asked for by such a name."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError

_ADDRESS = re.compile(r"hf:/{1,2}(?P<name>[^@/]+/[^@/]+)(@(?P<revision>.+))?")


def is_on_hub(path: str | Path) -> bool:
    """Whether it names a model on the hub; a Path has lost one of the slashes."""
    return str(path).startswith("hf:")


def download(path: str | Path) -> Path:
    """The directory of a local copy, fetched where it is not there yet; `hf://owner/name@revision` takes that one."""
    found = _ADDRESS.fullmatch(str(path))
    if found is None:
        raise UserError(f'"{path}": expected hf://owner/name, or hf://owner/name@revision.')
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(found["name"], revision=found["revision"], ignore_patterns=["training/*"]))
    except Exception as error:  # no connection, no such name, no right to it: each has its own class
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(f"hf://{found['name']}: cannot be had from the Hugging Face hub ({reason}).") from None
