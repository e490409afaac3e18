"""Errors a user can act on.

Each says what was wrong, where, and what to do next, in one line: the command line prints it as it
is and exits with code 2, and the Python API raises it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class DsaError(Exception):
    """What was wrong, where it was found, and what to do next.

    Args:
        problem: what was wrong, without a full stop.
        where: the file (and line) or argument it was found in.
        line: the line number in the file `where`, counted from 1.
        hint: what to do next, a short sentence.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | os.PathLike[str] | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem, self.where, self.line, self.hint = problem, where, line, hint
        place = "" if where is None else os.fspath(where)
        if line is not None:
            place += f", line {line}"
        message = f"{place}: {problem}" if place else problem
        super().__init__(f"{message}. {hint}" if hint else message)


class ConfigError(DsaError, ValueError):
    """A hyper-parameter, option or config file is wrong."""


class DataError(DsaError, ValueError):
    """A data file, vocabulary or vector file cannot be used as it is."""


class RunError(DsaError):
    """A run folder or model file is missing, incomplete or does not fit."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest one that does, and all of them."""
    names = list(names)
    by_lower = {one.lower(): one for one in reversed(names)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    known = "Known: " + ", ".join(names)
    return f"Did you mean {by_lower[close[0]]!r}? {known}" if close else known
