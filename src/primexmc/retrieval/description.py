"""index.json: what an index on disk is, read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UserError

DIRECTORY, DESCRIPTION, FORMAT_VERSION = "index", "index.json", 1


class SearchWarning(UserWarning):
    """Searching does not go the way that was asked for."""


class UnusableIndex(UserError):
    """An index of other labels, or one that cannot be used for another reason; exact search can."""


def read_index_description(place: Path) -> dict[str, Any]:
    """What the directory's index.json says, or a sentence on why it says nothing."""
    file = place / DESCRIPTION
    try:
        description: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        version = description["format_version"]
        missing = [key for key in ("backend", "num_labels", "labels", "facts") if key not in description]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableIndex(f"{file}: missing or damaged ({error}); `primexmc index` builds it again.") from None
    if version != FORMAT_VERSION or missing:
        what = f"it has no {missing[0]}" if missing else f"format version {version}, not {FORMAT_VERSION}"
        raise UnusableIndex(f"{file}: not an index of this version ({what}); `primexmc index` builds it again.")
    return description
