"""Parts of the one command, as tests call them."""

from __future__ import annotations

from typing import Any

from dsa_keras.commands import main as command

_ALONE = ("serve", "client")


def export(arguments: list[str]) -> int:
    """`dsa-keras export ...`, or `dsa-keras serve` and `dsa-keras client`."""
    alone = bool(arguments) and arguments[0] in _ALONE
    return command.main(arguments if alone else ["export", *arguments])


def tune(arguments: list[str]) -> int:
    """`dsa-keras tune ...`."""
    return command.main(["tune", *arguments])


def tune_arguments(arguments: list[str]) -> Any:
    """What the parser makes of `dsa-keras tune ...`."""
    return command.build_parser().parse_args(["tune", *arguments])
