"""The files and folders that an export may write.

Commands ask before they load TensorFlow, which takes seconds; the functions that write ask again.
"""

from __future__ import annotations

import os
from pathlib import Path

from dsa_keras.errors import ConfigError, RunError


def new_file(out: str | os.PathLike[str], suffix: str) -> Path:
    """The path of a file to write.

    Raises:
        ConfigError: if its name has another suffix, it exists, or its folder cannot be written to.
    """
    out = Path(out)
    if out.suffix != suffix:
        raise ConfigError(
            f"the name must end in {suffix}", where=out, hint=f"Give --out model{suffix}"
        )
    if os.path.lexists(out):
        raise ConfigError("the file exists", where=out, hint="Remove it, or choose another --out")
    _check_writable(out, out.absolute().parent)
    return out


def new_version(out: str | os.PathLike[str], version: int | None) -> Path:
    """The folder of a version to write.

    Args:
        out: the model's folder.
        version: a number that is not taken; None takes the next one.

    Raises:
        ConfigError: if the model's folder cannot be one, or cannot be written to.
        RunError: if the version exists.
    """
    out = Path(out)
    if version is not None and version < 1:
        raise ConfigError(f"version is {version}", where="--version", hint="Give a number from 1")
    _check_writable(out, out.absolute())
    if version is None:
        # A file may have a number for its name as well.
        numbers = [int(one.name) for one in out.glob("[0-9]*") if one.name.isdecimal()]
        return out / str(max(numbers, default=0) + 1)
    path = out / str(version)
    if os.path.lexists(path):
        raise taken(path)
    return path


def taken(path: Path) -> RunError:
    """What to say of a version that exists."""
    return RunError(
        "the version exists", where=path, hint="Versions are never overwritten: leave out --version"
    )


def _check_writable(out: Path, folder: Path) -> None:
    """Raises ConfigError unless a folder is, or can be made, and can be written to."""
    # Of a path that may not be looked at, os.path.exists says that it is not there.
    place = next(one for one in (folder, *folder.parents) if os.path.exists(one))  # noqa: PTH110
    if not place.is_dir():
        raise ConfigError("is not a folder", where=place, hint="Choose another --out")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(
            f"cannot be written: there is no permission to write to the folder {place}",
            where=out,
            hint="Choose another --out",
        )
