"""The command line of `export`: each command is a module with `add_parser` and `run`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from dsa_keras.commands.cli import Parser, run_command

COMMANDS = ("saved_model", "onnx_export", "litert", "verify", "serve", "client")
"""Modules of this package that have `add_parser(subparsers)` and `run(args)`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    parser = Parser(
        prog="python -m export",
        description="Turns a run folder into files that serve, and proves that they answer alike.",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"export.{name}").add_parser(subparsers)
    return run_command(parser, arguments)
