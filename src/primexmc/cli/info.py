"""`primexmc info`: what a model, data, a preset or the settings are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .options import add_settings_options, chosen_settings

SENTENCE = "tell about a model, data, a preset, or all settings"
EPILOG = """examples:
  primexmc info                        versions and presets
  primexmc info my-model               settings, labels, scores, size
  primexmc info my-data/               counts, frequencies, duplicates, lengths; memory and time of a training
  primexmc info my-data/ --preset minilm     the same for a training with these settings
  primexmc info --preset static-cpu
  primexmc info --settings             every setting with its default and what it does"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL|DATA", type=Path, nargs="?", help="a model's directory, or data")
    parser.add_argument("--settings", action="store_true", help="list every setting")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    add_settings_options(parser)


def run(arguments: argparse.Namespace) -> int:
    facts, text = _facts(arguments)
    print(json.dumps(facts, indent=2, ensure_ascii=False) if arguments.json else text)
    return 0


def _facts(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """What is to be told: as plain values, and as text."""
    from ..errors import UserError

    if arguments.settings and (arguments.what or arguments.preset):
        raise UserError("one question at a time: a MODEL or DATA, or --preset, or --settings.")
    if arguments.settings:
        from .about_settings import settings_facts, settings_text

        return settings_facts(), settings_text()
    if arguments.preset and arguments.what is None:
        from ..presets import load_preset
        from .about_settings import preset_as_text

        return load_preset(arguments.preset), preset_as_text(arguments.preset)
    if arguments.what is None:
        from .about_settings import overview_facts, overview_text

        return overview_facts(), overview_text()
    if _is_model(arguments.what):
        if arguments.preset or arguments.config or arguments.set:
            raise UserError(
                f"{arguments.what} is a model: its settings are its own; --preset, --config and --set are for DATA."
            )
        from .about_model import model_facts, model_text

        facts = model_facts(arguments.what)
        return facts, model_text(facts)
    return _about_data(arguments)


def _is_model(path: Path) -> bool:
    """A trained model, or what a training has left so far."""
    return (path / "primexmc.json").exists() or (path / "training").is_dir()


def _about_data(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    settings, values = chosen_settings(arguments)
    from ..data.corpus import Corpus
    from .about_data import data_facts_and_lines

    corpus = Corpus.load(arguments.what, settings=settings.data)
    facts, lines = data_facts_and_lines(corpus, settings, arguments.preset, arguments.config, values)
    return facts, "\n".join(lines)
