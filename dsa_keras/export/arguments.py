"""What the commands that export a run share."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Adds the folder of the data."""
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the dev split is, if the data moved"
    )
