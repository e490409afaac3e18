"""What the commands that read a run or a version share."""

from __future__ import annotations

import argparse
from pathlib import Path

from dsa_keras.errors import ConfigError
from dsa_keras.registry import import_module


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the run folder, and `--import`."""
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="a run folder")
    add_import(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
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
        help="import a module of your own first, which registers the run's encoder or objective",
    )


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Adds the folder of the data."""
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the dev split is, if the data moved"
    )
