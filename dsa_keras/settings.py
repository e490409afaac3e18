"""Settings as frozen dataclasses: checked, and turned into JSON and back.

What the data decides (the number of words, the names of the classes) is a field like any other, but
declared with `from_data`: it is no choice of the user's, so no option of the command line.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Self

from dsa_keras.errors import ConfigError, nearest


def from_data(default: Any) -> Any:
    """A field that the data decides."""
    return dataclasses.field(default=default, metadata={"from_data": True})


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of the frozen dataclasses that hold hyper-parameters.

    A subclass is a `@dataclass(frozen=True)` whose docstring describes every field under
    `Attributes:`; that text is also the help of the command line. `check` is called when an
    instance is made.
    """

    def __post_init__(self) -> None:
        for name, hint in self.hints().items():
            object.__setattr__(self, name, _typed(name, getattr(self, name), hint))
        self.check()

    def check(self) -> None:
        """Raises ConfigError for values that cannot be; see `require`."""

    def require(self, name: str, holds: bool, expected: str) -> None:
        """Raises ConfigError unless what must hold of a field does."""
        if not holds:
            raise ConfigError(f"{name} must be {expected}. Received: {getattr(self, name)!r}")

    def require_each(self, names: typing.Iterable[str], expected: str) -> None:
        """Raises ConfigError unless each of the fields is `"positive"`, a `"share"` and so on."""
        holds = _BOUNDS[expected]
        for name in names:
            self.require(name, holds(getattr(self, name)), expected)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """The type of every field by name."""
        types = typing.get_type_hints(cls)
        return {one.name: types[one.name] for one in dataclasses.fields(cls)}

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The fields that a user chooses, in their order."""
        fields = dataclasses.fields(cls)
        return tuple(one.name for one in fields if not one.metadata.get("from_data"))

    @classmethod
    def of_data(cls) -> tuple[str, ...]:
        """The fields that the data decides."""
        fields = dataclasses.fields(cls)
        return tuple(one.name for one in fields if one.metadata.get("from_data"))

    @classmethod
    def described(cls) -> dict[str, str]:
        """The description of each field, from the docstrings: there is no second text."""
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            texts |= _described(base.__doc__ or "")
        return {name: texts.get(name, "") for name in cls.hints()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {name: _plain(getattr(self, name)) for name in self.hints()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The settings with these values; the others keep their defaults.

        Raises:
            ConfigError: for a name that is no field, or a value that a field cannot have.
        """
        names = list(cls.hints())
        for key in values:
            if key not in names:
                raise ConfigError(f"unknown hyper-parameter {key!r}", hint=nearest(str(key), names))
        return cls(**values)

    def replace(self, **changes: Any) -> Self:
        """The same settings with some values changed."""
        own = {name: getattr(self, name) for name in self.hints()}
        return self.from_dict({**own, **changes})


def _described(docstring: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    _, _, part = inspect.cleandoc(docstring).partition("Attributes:\n")
    for line in part.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        start, colon, rest = text.partition(": ")
        if text and not indent:
            break
        if indent == 4 and colon:
            name, texts[start] = start, rest
        elif text and name:
            texts[name] += " " + text
    return {name: text.replace("`", "") for name, text in texts.items()}


_BOUNDS: dict[str, typing.Callable[[Any], bool]] = {
    "positive": lambda value: value > 0,
    "at least 0": lambda value: value >= 0,
    "at least 1": lambda value: value >= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
}


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _typed(name: str, value: Any, hint: Any) -> Any:
    """The value in the type of its field, or an error that says which type that is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in arguments:
            return value
        raise ConfigError(f"{name} must be one of {', '.join(arguments)}. Received: {value!r}")
    if origin is tuple:
        if isinstance(value, list | tuple) and value:
            return tuple(_typed(name, item, arguments[0]) for item in value)
        raise ConfigError(f"{name} must be a list. Received: {value!r}")
    number = _is_number(value)
    if hint is int and number and value == int(value):
        return int(value)
    if hint is float and number:
        return float(value)
    if hint not in _KINDS:  # a part with a check of its own
        return value
    if hint in (bool, str) and isinstance(value, hint):
        return value
    raise ConfigError(f"{name} must be {_KINDS[hint]}. Received: {value!r:.60}")


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond all floating-point numbers
        return False


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
