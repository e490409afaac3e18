"""Options of a kind among the parsed arguments: only what was given is there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

DATA, HYPER = "data_option ", "hyper_parameter "
"""What the names of these options start with."""


def options_given(args: argparse.Namespace, prefix: str) -> dict[str, Any]:
    """The parsed values of the options of a kind, those that were given."""
    return {
        name.removeprefix(prefix): value
        for name, value in vars(args).items()
        if name.startswith(prefix)
    }


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
