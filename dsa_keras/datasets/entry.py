"""What the registry knows of a data set: its reader, its recipe, its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsa_keras.errors import ConfigError

if TYPE_CHECKING:
    from dsa_keras.config import Recipe
    from dsa_keras.datasets.dataset import Dataset
    from dsa_keras.encoders import Encoder


@dataclass(frozen=True)
class Option:
    """An option of a reader, as the command line has it.

    Attributes:
        flag: such as `--text-column`.
        name: the argument of the reader.
        help: what it means.
        kind: of the value.
        metavar: what stands for the value in the help.
        count: how many values, if it is not one.
        choices: the values it may have.
        constant: what the flag means, where it takes no value.
    """

    flag: str
    name: str
    help: str
    kind: type = str
    metavar: str | tuple[str, ...] | None = None
    count: int | None = None
    choices: tuple[str, ...] | None = None
    constant: Any = None

    def argument(self) -> dict[str, Any]:
        """The arguments of `ArgumentParser.add_argument`."""
        if self.constant is not None:
            return {"action": "store_const", "const": self.constant, "help": self.help}
        given = {"metavar": self.metavar, "nargs": self.count, "choices": self.choices}
        given = {name: value for name, value in given.items() if value is not None}
        return {"type": self.kind, "help": self.help, **given}

    def words(self, value: Any) -> list[str]:
        """A value as it stands on a command line."""
        if self.constant is not None:
            return [self.flag]
        values = value if isinstance(value, list | tuple) else [value]
        return [self.flag, *map(str, values)]


ON_BAD_ROWS = Option(
    "--on-bad-rows",
    "on_bad_rows",
    "stop at a bad row (default), or leave it out and count it",
    choices=("error", "skip"),
)


@dataclass(frozen=True)
class Entry:
    """A data set that can be asked for by name.

    Attributes:
        name: of the data set.
        about: what it is, in a few words.
        read: reads it: takes `data_dir` and the options by name.
        recipe: how models are trained on it: takes the encoder and the options.
        options: of the reader.
        title: of its options in the help, if they have a part of their own.
        vectors: whether word vectors are wanted; without any, words get random ones to train.
    """

    name: str
    about: str
    read: Callable[..., Dataset]
    recipe: Callable[[Encoder, Mapping[str, Any]], Recipe]
    options: tuple[Option, ...] = ()
    title: str | None = None
    vectors: bool = True

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options, each of which the reader must know.

        Raises:
            ConfigError: if it does not know one.
        """
        from dsa_keras.errors import nearest

        known = [option.name for option in self.options]
        for name in options:
            if name not in known:
                raise ConfigError(
                    f"unknown option of {self.name}: {name!r}",
                    hint=nearest(name, known) if known else "It takes none",
                )
        return dict(options)

    def words(self, options: Mapping[str, Any]) -> list[str]:
        """The options as they stand on a command line."""
        by_name = {option.name: option for option in self.options}
        return [word for name, value in options.items() for word in by_name[name].words(value)]
