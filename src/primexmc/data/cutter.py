"""Cutter: a tokenizer that reads only as much of a long text as can end up among its first tokens."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer

from ..errors import UserError

_FIRST_WINDOW = 6  # characters a token: English words have four or five letters and a space
# Pre-tokenizers that never join what white space parts, so that a text cut there has the same first tokens.
_PARTED_BY_SPACE = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}


class Cutter:
    """The caller's tokenizer, left alone, as one that cuts at `max_tokens` and does not pad."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, add_special_tokens: bool) -> None:
        num_special = tokenizer.num_special_tokens_to_add(False) if add_special_tokens else 0
        if max_tokens <= num_special:
            raise UserError(
                f"{max_tokens} tokens a text leave no room beside {num_special} special tokens; allow more."
            )
        cutter: Tokenizer = Tokenizer.from_str(tokenizer.to_str())
        cutter.no_padding()
        cutter.enable_truncation(max_tokens)
        self._tokenizer, self._max_tokens, self._add_special_tokens = cutter, max_tokens, add_special_tokens
        self.recipe = cutter.to_str()
        self.largest_id = max(cutter.get_vocab(with_added_tokens=True).values(), default=0)
        self._may_cut = _parts_at_spaces(json.loads(self.recipe))

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Each text's ids."""
        if not self._may_cut:
            return self._encode(texts)
        rows: list[list[int]] = [[]] * len(texts)
        unsure, window = list(range(len(texts))), _FIRST_WINDOW * self._max_tokens
        while unsure:
            beginnings = [_beginning(texts[row], window) for row in unsure]
            for row, ids in zip(unsure, self._encode(beginnings), strict=True):
                rows[row] = ids
            unsure = [
                row
                for row, beginning in zip(unsure, beginnings, strict=True)
                if len(rows[row]) < self._max_tokens and len(beginning) < len(texts[row])
            ]
            window *= 3
        return rows

    def _encode(self, texts: list[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=self._add_special_tokens)
        return [encoding.ids for encoding in encodings]


def _beginning(text: str, window: int) -> str:
    """Whole words of about `window` characters; all of a text that is short or has no spaces."""
    if len(text) <= window:
        return text
    end = text.rfind(" ", 0, window)
    return text[:end] if end > 0 else text


def _parts_at_spaces(recipe: dict[str, Any]) -> bool:
    joined = any(" " in token["content"].strip() for token in recipe.get("added_tokens") or ())
    return not joined and _is_parted(recipe.get("pre_tokenizer") or {})


def _is_parted(step: dict[str, Any]) -> bool:
    if step.get("type") == "Sequence":
        return any(_is_parted(inner) for inner in step["pretokenizers"])
    if step.get("type") == "ByteLevel":
        return bool(step.get("use_regex", True))
    if step.get("type") == "Metaspace":
        return bool(step.get("split", True))
    return step.get("type") in _PARTED_BY_SPACE
