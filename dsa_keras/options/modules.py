"""Modules of the user's own: `--import`, and the folder of a run that may need one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError
from dsa_keras.registry import import_module


def add_import_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--import`, which imports a module when the arguments are parsed."""

    def imported(name: str) -> str:
        try:
            import_module(name)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return name

    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        type=imported,
        metavar="MODULE",
        help="import a module of your own that registers an encoder, an objective or a data set; "
        "may be repeated",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the positional argument `RUN`, and `--import` for what the run is made of."""
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run")
    add_import_option(parser)


def import_named(arguments: Sequence[str]) -> None:
    """Imports the modules that `--import` and `--encoder module:Name` name.

    Call it before the parser is made, which then has the options of what they register.

    Raises:
        ConfigError: if one of them cannot be imported.
    """
    for flag, value in _flags_with_values(arguments):
        if flag == "--import":
            import_module(value)
        elif flag == "--encoder":
            # A name that is not known is told when all is parsed.
            with contextlib.nullcontext() if ":" in value else contextlib.suppress(ConfigError):
                ENCODERS.get(value)


def import_words(args: argparse.Namespace) -> list[str]:
    """The words of a command line that import again what these arguments imported."""
    named = [*getattr(args, "imports", ()), *_module_of(getattr(args, "encoder", None))]
    return [word for name in dict.fromkeys(named) for word in ("--import", name)]


def _module_of(reference: str | None) -> list[str]:
    module, colon, _ = (reference or "").partition(":")
    return [module] if colon else []


def _flags_with_values(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    for number, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if equals:
            yield flag, value
        elif number + 1 < len(words):
            yield flag, words[number + 1]
