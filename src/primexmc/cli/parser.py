"""What can be typed: the verbs, their options, and one sentence for whatever else is typed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from ..errors import UserError, did_you_mean
from . import compare, demo, evaluate, export, index, info, labels, predict, serve, train

VERBS = {
    "train": train,
    "evaluate": evaluate,
    "compare": compare,
    "predict": predict,
    "labels": labels,
    "export": export,
    "index": index,
    "info": info,
    "serve": serve,
    "demo": demo,
}
EPILOG = """first steps:
  primexmc demo                                train and try the embedded example
  primexmc train reviews.csv --out my-model    a file with the columns text and labels
  primexmc evaluate my-model test.csv
  echo "some text" | primexmc predict my-model

`primexmc VERB --help` shows a verb's options. PRIMEXMC_DEBUG=1 shows the traceback of an error."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence, raised like every other error of the user."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; `{self.prog} --help` shows how it goes.")


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments, with the function to call as `run`."""
    if argv and not argv[0].startswith("-") and argv[0] not in VERBS:
        hint = did_you_mean(argv[0], VERBS)
        raise UserError(f'there is no verb "{argv[0]}".{hint} There are: {", ".join(VERBS)}.')
    parser, verbs = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    _take_last_word(arguments, unknown)
    if unknown:
        raise UserError(_unknown(unknown[0], verbs.get(arguments.verb, parser)))
    if arguments.verb is None:
        parser.print_help()
        parser.exit(2)
    return arguments


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser, and each verb's own."""
    parser = Parser(
        prog="primexmc",
        description="Extreme multi-label classification by label prototypes: name the right few of very many labels.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"primexmc {__version__}")
    shared = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", parser_class=Parser)
    verbs: dict[str, Parser] = {}
    for name, module in VERBS.items():
        verb = verbs[name] = shared.add_parser(
            name,
            help=module.SENTENCE,
            description=module.SENTENCE[0].upper() + module.SENTENCE[1:] + ".",
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return parser, verbs


def _take_last_word(arguments: argparse.Namespace, unknown: list[str]) -> None:
    """A word that may be left out, like FILE of predict, is lost to argparse when it comes after the options."""
    name = getattr(VERBS.get(arguments.verb), "LAST_WORD", None)
    if name and len(unknown) == 1 and not unknown[0].startswith("-") and getattr(arguments, name) is None:
        setattr(arguments, name, unknown.pop())


def _unknown(word: str, parser: Parser) -> str:
    option = word.partition("=")[0]
    if option.startswith("-"):
        hint = did_you_mean(option, _options(parser))
        return f'{parser.prog} has no option "{option}".{hint} `{parser.prog} --help` lists them.'
    return f'{parser.prog}: "{word}" is one word too many; `{parser.prog} --help` shows how it goes.'


def _options(parser: Parser) -> Sequence[str]:
    return [option for action in parser._actions for option in action.option_strings]
