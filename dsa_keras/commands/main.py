"""`dsa-keras COMMAND`, or `dsa-keras COMMAND`: finds the command and runs it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import dsa_keras
from dsa_keras.command_line import PROGRAM, Parser, example, reported, run_command
from dsa_keras.options import import_named

COMMANDS = (
    "train",
    "evaluate",
    "predict",
    "encode",
    "similar",
    "compare",
    "explain",
    "inspect",
    "demo",
    "tune",
    "export",
    "serve",
    "client",
)
"""The modules of this package that are commands, in the order in which `--help` lists them."""

_EXAMPLE = f"""
{PROGRAM} demo
{PROGRAM} train sst2 --data-dir data --vectors glove.840B.300d.zip
{PROGRAM} evaluate runs/sst2 --split test
{PROGRAM} predict runs/sst2 "a gripping , funny film"
"""


def build_parser() -> Parser:
    """The parser of all commands; it does not load TensorFlow."""
    parser = Parser(
        prog=PROGRAM,
        description="Sentence embeddings with Dynamic Self-Attention (arXiv 1808.07383).\n"
        f"{PROGRAM} COMMAND --help says more about a command.",
        epilog=example(_EXAMPLE),
    )
    parser.add_argument("--version", action="version", version=f"dsa_keras {dsa_keras.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"dsa_keras.commands.{name}").add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments

    def run() -> int:
        import_named(words)
        return run_command(build_parser(), words)

    return reported(PROGRAM, run)
