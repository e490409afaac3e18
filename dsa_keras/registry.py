"""Registries: encoders, objectives and data sets by name.

Each of ours is one file in the folder of its kind, which registers itself when it is imported; the
registry imports the folder when it is first asked. A file of a user's own registers itself in the
same way, and there are three doors to it: the user imports it; a command is given
`package.module:Name` or `--import package.module`; or an installed package names it as an entry
point of the group `dsa_keras.encoders` (`.heads`, `.objectives`, `.datasets`). A name in a run
folder never imports anything else.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from dsa_keras.errors import ConfigError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by name.

    Args:
        kind: what to call one in messages, such as `"encoder"`.
        package: the package whose modules register ours; also the group of entry points.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._one = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        self._found: dict[str, T] = {}
        self._complete = False

    def add(self, name: str, thing: T) -> T:
        """Registers a thing.

        Raises:
            ConfigError: if the name is taken by something else, or is no name.
        """
        if not name or ":" in name or name != name.strip():
            raise ConfigError(f"{name!r} cannot be the name of {self._one}")
        known = self._found.get(name)
        if known is not None and not _same(known, thing):
            raise ConfigError(
                f"there is {self._one} {name!r} already", hint="Register it under another name"
            )
        self._found[name] = thing
        return thing

    def get(self, name: str) -> T:
        """The thing of this name, or the one that `package.module:Name` names.

        Only for names that the user gives; see `registered`.

        Raises:
            ConfigError: if there is none.
        """
        return self._imported(name) if ":" in name else self.registered(name)

    def registered(self, name: str) -> T:
        """The thing of this name; for names from files, which must not choose what is imported.

        Raises:
            ConfigError: if there is none.
        """
        self._load()
        if name not in self._found:
            self._load_entry_point(name)
        if name not in self._found:
            raise ConfigError(
                f"unknown {self.kind} {name!r}",
                hint=f"{nearest(name, self.names())}. One of your own must be imported first: give "
                "package.module:Name, or --import package.module",
            )
        return self._found[name]

    def names(self) -> tuple[str, ...]:
        """All names that are registered now, sorted."""
        self._load()
        return tuple(sorted(self._found))

    def __iter__(self) -> Iterator[T]:
        return iter([self._found[name] for name in self.names()])

    def _load(self) -> None:
        """Imports the modules of our own package, each of which registers itself."""
        if self._complete:
            return
        self._complete = True
        try:
            for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
                if not module.ispkg:
                    importlib.import_module(f"{self.package}.{module.name}")
        except BaseException:
            self._complete = False
            raise

    def _load_entry_point(self, name: str) -> None:
        """Imports what an installed package says to have under a name."""
        for entry in entry_points(group=self.package, name=name):
            package = entry.dist.name if entry.dist else "an installed package"
            try:
                entry.load()
                problem = None if name in self._found else f"registers no {self.kind} {name!r}"
            except Exception as error:
                problem = f"cannot be loaded ({_in_one_line(error)})"
            if problem:
                raise ConfigError(
                    problem, where=entry.value, hint=f"Mend or remove {package}, which names it"
                )

    def _imported(self, reference: str) -> T:
        module_name, _, attribute = reference.partition(":")
        thing = getattr(import_module(module_name), attribute, None)
        if thing is None:
            raise ConfigError(f"there is no {attribute!r} in {module_name}", where=reference)
        if not any(thing is known for known in self._found.values()):
            raise ConfigError(
                f"it is not registered as {self._one}",
                where=reference,
                hint=f"Register it with register_{self.kind.replace('data set', 'dataset')}",
            )
        return thing


def register(registry: Registry[Any], name: str) -> Callable[[Any], Any]:
    """A decorator that registers a class under a name, which becomes its `name`."""

    def decorate(thing: Any) -> Any:
        thing.name = name
        return registry.add(name, thing)

    return decorate


def of_json(registry: Registry[Any], values: Any) -> Any:
    """The settings that `to_json` told: those of the thing of their name.

    Raises:
        ConfigError: if there is none, or it has no such settings.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{registry.kind} must be an object with a name and settings. Received: {values!r:.60}"
        )
    settings = {name: value for name, value in values.items() if name != "name"}
    return registry.registered(str(values.get("name", ""))).from_dict(settings)


def import_module(name: str) -> Any:
    """Imports a module that the user named, from the current folder too.

    Raises:
        ConfigError: if it cannot be imported.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except Exception as error:
        # Whatever is wrong in a module of the user's own is told in one line.
        raise ConfigError(
            f"cannot be imported ({_in_one_line(error)})",
            where=name,
            hint="Give the name of a module that can be, such as my_package.my_module",
        ) from error


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _same(known: Any, thing: Any) -> bool:
    """Whether a module that is imported again registers what it registered before."""
    return known is thing or (_place(known) is not None and _place(known) == _place(thing))


def _place(thing: Any) -> tuple[str, str] | None:
    """Module and name of a class or a function; None for what is neither."""
    name = getattr(thing, "__qualname__", None)
    return None if name is None else (thing.__module__, name)
