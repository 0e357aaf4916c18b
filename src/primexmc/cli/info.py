"""`primexmc info`: what a model, data, a preset or the settings are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .options import add_set_option

SENTENCE = "tell about a model, data, a preset, or all settings"
EPILOG = """examples:
  primexmc info                        versions and presets
  primexmc info my-model               settings, labels, scores, size
  primexmc info my-data/               counts, frequencies, duplicates, lengths
  primexmc info --preset static-cpu
  primexmc info --settings             every setting with its default and what it does"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL|DATA", type=Path, nargs="?", help="a model's directory, or data")
    parser.add_argument("--preset", metavar="NAME", help="print a preset's file")
    parser.add_argument("--settings", action="store_true", help="list every setting")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    add_set_option(parser)


def run(arguments: argparse.Namespace) -> int:
    facts, text = _facts(arguments)
    print(json.dumps(facts, indent=2, ensure_ascii=False) if arguments.json else text)
    return 0


def _facts(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """What is to be told: as plain values, and as text."""
    from ..errors import UserError

    asked = [bool(arguments.what), bool(arguments.preset), arguments.settings]
    if sum(asked) > 1:
        raise UserError("one question at a time: a MODEL or DATA, or --preset, or --settings.")
    if arguments.settings:
        from .about_settings import settings_facts, settings_text

        return settings_facts(), settings_text()
    if arguments.preset:
        from ..presets import load_preset
        from .about_settings import preset_as_text

        return load_preset(arguments.preset), preset_as_text(arguments.preset)
    if arguments.what is None:
        from .about_settings import overview_facts, overview_text

        return overview_facts(), overview_text()
    if _is_model(arguments.what):
        from .about_model import model_facts, model_text

        facts = model_facts(arguments.what)
        return facts, model_text(facts)
    return _about_data(arguments)


def _is_model(path: Path) -> bool:
    """A trained model, or what a training has left so far."""
    return (path / "primexmc.json").exists() or (path / "training").is_dir()


def _about_data(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from importlib import resources

    from tokenizers import Tokenizer

    from ..config import Settings, parse_overrides
    from ..data.corpus import Corpus
    from ..data.facts import data_facts, fact_lines

    settings = Settings().with_values(parse_overrides(arguments.set), "--set").data
    with resources.as_file(resources.files("primexmc.model") / "static_table" / "tokenizer.json") as file:
        tokenizer = Tokenizer.from_file(str(file))
    facts = data_facts(Corpus.load(arguments.what, settings=settings), tokenizer, settings)
    return facts, "\n".join(fact_lines(facts))
