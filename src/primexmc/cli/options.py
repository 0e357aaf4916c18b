"""Options that several verbs share, and what they mean together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..config import Settings, parse_overrides, read_toml
from ..own_code import allow_named

# fusion.blend's, named here without importing numpy
MODES = ("auto", "theta", "memory", "lexical", "W", "theta+W", "W+memory", "all")


def add_settings_options(parser: argparse.ArgumentParser) -> None:
    """Preset, file, single values: each wins over the one before."""
    parser.add_argument("--preset", metavar="NAME", help="start from a preset (`primexmc info` lists them)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="a TOML file with settings; wins over the preset")
    add_set_option(parser)


def add_set_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="one setting, as often as wanted; wins over all (`primexmc info --settings` lists them)",
    )


def add_device_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help='"auto" (the GPU where there is one), "cpu", "cuda", "cuda:1"')


def add_mode_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=MODES, help="what predicts; by default what was best on validation")


def chosen_settings(arguments: argparse.Namespace) -> tuple[Settings, dict[str, Any]]:
    """What preset, file and --set say together (the rest are defaults), and the values of --set alone.

    Reads and checks all of them before anything slow begins.
    """
    from ..presets import load_preset

    settings, values = Settings(), parse_overrides(arguments.set)
    allow_named(values)
    if arguments.preset is not None:
        settings = settings.with_values(load_preset(arguments.preset), f"preset {arguments.preset}")
    if arguments.config is not None:
        settings = settings.with_values(read_toml(arguments.config), str(arguments.config))
    return settings.with_values(values, "--set"), values
