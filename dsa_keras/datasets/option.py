"""An option of a data set: an argument of its reader, and what the command line calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a reader, as the command line has it.

    A flag either takes a value (or `count` values), or it stands for the value `constant`.

    Example:

    >>> size = Option("--size", "size", "number of examples", kind=int, metavar="N")
    >>> size.words(300)
    ['--size', '300']

    Attributes:
        flag: such as `--text-column`.
        name: the argument of the reader.
        help: what it means.
        kind: of the value, such as `int`.
        metavar: what stands for the value in the help; one for each value, if there are several.
        count: how many values it takes, if it is not one.
        choices: the values it may have.
        constant: what the flag means, where it takes no value.
        separator: what stands between the values of a list that is given as one word.
    """

    flag: str
    name: str
    help: str
    kind: type = str
    metavar: str | tuple[str, ...] | None = None
    count: int | None = None
    choices: tuple[str, ...] | None = None
    constant: Any = None
    separator: str | None = None

    def argument(self) -> dict[str, Any]:
        """The arguments of `ArgumentParser.add_argument`, but for flag and destination."""
        if self.constant is not None:
            return {"action": "store_const", "const": self.constant, "help": self.help}
        given = {"metavar": self.metavar, "nargs": self.count, "choices": self.choices}
        given = {name: value for name, value in given.items() if value is not None}
        return {"type": self._parsed if self.separator else self.kind, "help": self.help, **given}

    def words(self, value: Any) -> list[str]:
        """A value as it stands on a command line; nothing for one that needs no words."""
        if value is None:
            return []
        if self.constant is not None:
            return [self.flag] if value == self.constant else []
        values = [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        if self.separator:
            values = [self.separator.join(values)]
        if len(values) == 1 and values[0].startswith("-"):
            # Alone, it would be taken for a flag.
            return [f"{self.flag}={values[0]}"]
        return [self.flag, *values]

    def _parsed(self, word: str) -> list[Any]:
        """The values in one word."""
        return [self.kind(one.strip()) for one in word.split(self.separator)]


ON_BAD_ROWS = Option(
    "--on-bad-rows",
    "on_bad_rows",
    "stop at a bad row (default), or leave it out and count it",
    choices=("error", "skip"),
)
"""What all readers of files take."""

ENCODING = Option(
    "--encoding", "encoding", "of files of text, such as cp1252 (default: utf-8)", metavar="NAME"
)
"""What all that is read from a person's own files takes."""

DATA_SEED = Option(
    "--data-seed",
    "seed",
    "another seed generates other examples, or draws other splits (default: 0)",
    kind=int,
    metavar="N",
)
"""What all that is drawn at random takes."""
