"""The options that say which data: those of every data set that is registered."""

from __future__ import annotations

import argparse
from typing import Any

from dsa_keras.datasets import DATASETS, Entry, Option
from dsa_keras.errors import ConfigError
from dsa_keras.options.parsed import DATA, listed, options_given


def add_task(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Adds the positional argument `TASK`, the name of a data set.

    Args:
        parser: of the command.
        needed: False if the command can find it out.
    """
    count = None if needed else "?"
    parser.add_argument("task", metavar="TASK", nargs=count, help=", ".join(DATASETS.names()))


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--data-dir`, `--vectors`, and the options of every data set.

    Raises:
        ConfigError: if a data set has an option that the command has for something else.
    """
    data = parser.add_argument_group("data")
    data.add_argument("--data-dir", metavar="DIR", help="folder (or archive) of the data")
    data.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="word vectors, .txt or .zip or .gz; without any, words get random vectors that are "
        "trained",
    )
    groups = {"data": data}
    for flag, (option, owners) in _options_of_data().items():
        if flag in parser._option_string_actions:
            raise ConfigError(
                f"the data set {owners[0].name} has an option {flag}, which this command has for "
                "something else",
                hint="Give the option of the data set another flag",
            )
        titles = {entry.title or "data" for entry in owners}
        title = titles.pop() if len(titles) == 1 else "data"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        argument = option.argument()
        if title == "data":
            argument["help"] += f" [{', '.join(entry.name for entry in owners)}]"
        argument["help"] = argument["help"].replace("%", "%%")
        groups[title].add_argument(flag, dest=DATA + flag, default=argparse.SUPPRESS, **argument)


def data_options(args: argparse.Namespace, task: str) -> dict[str, Any]:
    """The options of `load_dataset` that were given.

    Raises:
        ConfigError: if one of them is an option of other data sets only.
    """
    by_flag = {option.flag: option.name for option in DATASETS.get(task).options}
    options: dict[str, Any] = {}
    for flag, value in options_given(args, DATA).items():
        if flag not in by_flag:
            owners = [entry.name for entry in _options_of_data()[flag][1]]
            raise ConfigError(f"{flag} is an option of {listed(owners)}, not of {task}")
        options[by_flag[flag]] = value
    return options


def _options_of_data() -> dict[str, tuple[Option, list[Entry]]]:
    """The options of all data sets by flag, and the data sets that have them."""
    found: dict[str, tuple[Option, list[Entry]]] = {}
    for entry in DATASETS:
        for option in entry.options:
            found.setdefault(option.flag, (option, []))[1].append(entry)
    return found
