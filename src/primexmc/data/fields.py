"""Fields that LF lines and tables share: title, content and what counts as text."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..errors import UserError
from .corpus import DataWarning, Labels


def as_text(value: Any, what: str, place: str) -> str:
    """A field's text: nothing for null, digits for numbers, an error for lists and objects."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return "" if value != value else str(value)
    raise UserError(f"{place}: {what} is a {type(value).__name__}; expected a text.")


def title_and_content(row: Mapping[str, Any], place: str, fields: str = "title+content") -> str:
    """What the encoder reads of an LF line: `DataSettings.fields`."""
    title = as_text(row.get("title"), "title", place)
    if fields == "title":
        return title.strip()
    content = as_text(row.get("content"), "content", place)
    return f"{title.strip()} {content.strip()}".strip()


def say_textless_labels(labels: Labels, place: str) -> None:
    """Warns once when some labels have no text; an error when none has."""
    num_textless = sum(not text for text in labels.texts)
    if num_textless == len(labels):
        raise UserError(f"{place}: none of its {len(labels)} labels has a text (fields title and content).")
    if num_textless:
        warnings.warn(f"{place}: {num_textless} of {len(labels)} labels have no text.", DataWarning, stacklevel=2)
