"""Files that appear whole or not at all: written aside, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path beside `path` to write to; renames it to `path` if the block succeeds.

    The temporary name keeps the suffix of `path`, since some writers choose their format by it.

    Raises:
        OSError: with the name of `path`, if it is a folder or its folder cannot be written to.

    Example:
    ```python
    with written_aside("vectors.npy") as aside:
        np.save(aside, vectors)
    ```
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        # The user knows the name of the file, not the one beside it.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        _flush(aside)
        # mkstemp is private to the user; a finished file has the permissions any new file has.
        aside.chmod(0o666 & ~_umask())
        aside.replace(path)
        _flush(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary folder beside `path` to fill; renames it to `path` if the block succeeds.

    What a killed process has left of an earlier try is removed.

    Raises:
        FileExistsError: if `path` exists and is not an empty folder.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}-*.aside"):
        if (handle := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=".aside", dir=path.parent))
    handle = _locked(aside)
    try:
        yield aside
        for item in aside.rglob("*"):
            _flush(item)
        aside.chmod(0o777 & ~_umask())
        if path.exists() and any(path.iterdir()):
            raise FileExistsError(f"{path} exists and is not empty")
        aside.replace(path)
        _flush(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _locked(folder: Path) -> int | None:
    """A handle that locks the folder until it is closed; None if another process has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
