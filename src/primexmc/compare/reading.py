"""What a comparison reads: settings that the user names, and the data as they say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import DataSettings, Settings, flatten, read_toml
from ..data.corpus import Corpus
from ..presets import load_preset
from .provenance import corpus_key

Data = str | Path | Corpus


class Reader:
    """Reads each data set once, with its key; several recipes mostly read it alike."""

    def __init__(self, preset: str | None) -> None:
        self._preset = preset
        self._there: dict[Any, tuple[Corpus, str]] = {}

    def read(self, data: Data, values: Mapping[str, Any]) -> tuple[Corpus, str]:
        read_as = (data if isinstance(data, (str, Path)) else id(data), _data_settings(self._preset, values))
        if read_as not in self._there:
            corpus = data if isinstance(data, Corpus) else load_corpus(data, self._preset, values)
            self._there[read_as] = corpus, corpus_key(corpus)
        return self._there[read_as]


def named_values(config: str | Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted key; checked before anything is read."""
    values: dict[str, Any] = {}
    if config is not None:
        content = read_toml(Path(config))
        Settings().with_values(content, str(config))
        values |= dict(flatten(content))
    Settings().with_values(settings, "settings")
    return values | dict(flatten(settings))


def load_corpus(data: str | Path, preset: str | None, values: Mapping[str, Any]) -> Corpus:
    """Read as the preset and the user say; a method does not choose how the data is read."""
    corpus = Corpus.load(data, settings=_data_settings(preset, values))
    for name in ("train", "test"):
        corpus.split(name)
    return corpus


def _data_settings(preset: str | None, values: Mapping[str, Any]) -> DataSettings:
    settings = Settings() if preset is None else Settings().with_values(load_preset(preset), f"preset {preset}")
    return settings.with_values(values, "settings").data
