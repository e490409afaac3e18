"""What the command lines share: parsers that help, and errors in one line.

`run_command` is the whole life of a command: exit code 0 on success only, 2 for a user's mistake
with one line that says what was wrong and what to do, 130 after Ctrl-C. Commands import what they
need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dsa_keras.backend import require_tensorflow
from dsa_keras.errors import ConfigError, DsaError, nearest

PROGRAM = "dsa-keras"
"""The one command, as help and hints name it."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose help keeps its layout and whose errors name the nearest option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parses; an option that does not exist is refused with the nearest name."""
        values, rest = super().parse_known_args(*args, **kwargs)
        for word in rest:
            if word.startswith("--"):
                name = word.split("=")[0]
                hint = nearest(name, self._option_string_actions).split(" Known:")[0]
                near = f" {hint}" if hint.startswith("Did") else ""
                self.error(f"unknown option {name}.{near} See {self.prog} --help")
        return values, rest

    def error(self, message: str) -> NoReturn:
        """One line, exit code 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def add_group(commands: Any, name: str, **options: Any) -> Any:
    """Adds a command that has commands of its own; returns what they are added to."""
    parser = commands.add_parser(name, **options)

    def show_help(_: argparse.Namespace) -> int:
        parser.print_help()
        return 2

    parser.set_defaults(run=show_help)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def require_extra(extra: str, *modules: str) -> None:
    """Says what to install where a command needs modules that are missing.

    Raises:
        ConfigError: if one cannot be found.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(
                f"{module} is not installed, which this command needs",
                hint=f"Install it: pip install 'dsa-keras[{extra}]'",
            )


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Parses and runs the command that the parser's `run` default names; returns the exit code."""
    args = parser.parse_args(arguments)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return reported(parser.prog, lambda: args.run(args) or 0)


def reported(program: str, action: Callable[[], int]) -> int:
    """The exit code of an action whose errors are told in one line.

    Args:
        program: what the line starts with.
        action: what is done; it returns the exit code.
    """
    try:
        return action()
    except DsaError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away (head, less): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or error
        print(f"{program}: error: {place}{reason}", file=sys.stderr)
        return 2


_UNUSED = ("sklearn", "matplotlib.pyplot")
"""Loaded by Keras if they are installed, for functions that no command calls; it takes a third of
the time until a command begins."""


def load_tensorflow(run_dir: Path | None = None) -> None:
    """Loads TensorFlow and Keras, without notes on absent GPUs or, later, on retracing.

    Args:
        run_dir: a folder that is refused before that, which takes seconds, if it is no run.
    """
    if run_dir is not None:
        from dsa_keras.runs import Run

        Run(run_dir).config()
    try:
        require_tensorflow()
    except ImportError as error:
        raise ConfigError(str(error).rstrip(".")) from None
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with _as_if_absent(_UNUSED):
            tensorflow = importlib.import_module("tensorflow")
            importlib.import_module("keras")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
    tensorflow.get_logger().setLevel("ERROR")


@contextlib.contextmanager
def _as_if_absent(names: Sequence[str]) -> Iterator[None]:
    """Lets imports of modules fail for the time of a `with` block, unless they are loaded."""
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def example(text: str) -> str:
    """The part of a `--help` that shows the command in use."""
    lines = "\n".join(f"  {line}" for line in text.strip().splitlines())
    return f"example:\n{lines}"
