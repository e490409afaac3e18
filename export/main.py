"""The command line of `export`: each command is a module with `add_parser` and `run`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from dsa_keras.command_line import Parser, example, run_command

COMMANDS = ("saved_model", "onnx_export", "litert", "verify", "serve", "client")
"""Modules of this package that have `add_parser(subparsers)` and `run(args)`."""


_EXAMPLE = """
python -m export saved-model runs/demo --out models/demo
python -m export verify models/demo --run runs/demo
python -m export serve models/demo
python -m export client --url http://127.0.0.1:8501/v1/models/demo "not a dull moment"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    parser = Parser(
        prog="python -m export",
        description="Turns a run folder into files that serve, and proves that they answer alike.",
        epilog=example(_EXAMPLE),
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"export.{name}").add_parser(subparsers)
    return run_command(parser, arguments)
