"""Files that appear whole or not at all: written aside, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What tempfile puts between a name and our mark. It has no "-", so that a mark is of one path only.
_TOKEN = "[a-z0-9_]{8}"
_ASIDE, _REPLACED = "aside", "replaced"
_MARKED = re.compile(rf"\..*-{_TOKEN}\.([a-z]+)(\.[^.]*)?", re.DOTALL)


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
    aside = new_aside(path)
    try:
        yield aside
        finish(aside)
        aside.replace(path)
        flush(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def new_aside(path: Path, mark: str = _ASIDE) -> Path:
    """Makes an empty temporary file beside `path`, of its suffix, to be renamed to it.

    Args:
        path: the file it is going to be.
        mark: a word of small letters in its name, by which `is_aside` knows whose it is.

    Raises:
        OSError: with the name of `path`, if it is a folder or its folder cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=f".{mark}{path.suffix}", dir=path.parent
        )
    except OSError as error:
        # The user knows the name of the file, not the one beside it.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    return Path(name)


def finish(aside: Path) -> None:
    """Makes a temporary file ready to be renamed: on the disk, with a new file's permissions."""
    flush(aside)
    # mkstemp is private to the user; a finished file has the permissions any new file has.
    aside.chmod(0o666 & ~_umask())


def is_aside(name: str, *marks: str) -> bool:
    """Whether a file or folder of this name was written, or set aside, by the functions here.

    Args:
        name: without the folder it is in.
        marks: those to look for; without any, the marks of this module.
    """
    found = _MARKED.fullmatch(name)
    return found is not None and found[1] in (marks or (_ASIDE, _REPLACED))


@contextlib.contextmanager
def folder_written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary folder beside `path` to fill; renames it to `path` if the block succeeds.

    What a killed process has left of an earlier try is removed.

    Raises:
        FileExistsError: if `path` exists and is not an empty folder.
    """
    path = Path(path)
    with _aside_folder(path) as aside:
        yield aside
        _finish_folder(aside)
        if path.exists() and any(path.iterdir()):
            raise FileExistsError(f"{path} exists and is not empty")
        aside.replace(path)
        flush(path.parent)


@contextlib.contextmanager
def replaced_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary folder beside `path` to fill; it takes the place of `path` in the end.

    No system call that is everywhere renames a full folder over another. So the old folder is
    renamed to a hidden name first, and removed last. A process that dies between leaves both;
    `recover_folder` then puts the old one back, which this function does before anything else.
    If the block raises, the old folder is as it was. Nothing in the old folder is asked whether it
    may go: that is the caller's to know. Of a link to a folder, the folder is replaced.

    Raises:
        NotADirectoryError: if `path` is a file.
        BlockingIOError: if another writer is replacing the same folder.
        OSError: if a folder that was not there before has appeared in its place.

    Example:
    ```python
    with replaced_folder("runs/snli") as aside:
        (aside / "config.json").write_text(config)
    ```
    """
    path = Path(path).resolve()
    recover_folder(path)
    held = None
    if path.exists():
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        if (held := _locked(path, anyway=True)) is None:
            raise BlockingIOError(errno.EAGAIN, "Another process is replacing it", str(path))
    try:
        with _aside_folder(path) as aside:
            yield aside
            _finish_folder(aside)
            if held is None or not path.exists():
                aside.replace(path)
                flush(path.parent)
            else:
                _take_place(aside, path)
    finally:
        if held is not None:
            os.close(held)


def recover_folder(path: str | os.PathLike[str]) -> None:
    """Settles what a process that died in `replaced_folder` has left.

    If `path` is missing or an empty folder, the old folder is put back. Else a folder is in its
    place, and the old one is removed. A folder that a live process is replacing is left alone.
    """
    path = Path(path).resolve()
    for left, handle in _left_folders(path, _REPLACED):
        try:
            if not path.exists() or (path.is_dir() and not any(path.iterdir())):
                left.replace(path)
                flush(path.parent)
            else:
                _discard(left)
        finally:
            os.close(handle)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def flush(path: Path) -> None:
    """Waits until a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _aside_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, locked while it is filled and removed if it is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left, handle in _left_folders(path, _ASIDE):
        shutil.rmtree(left, ignore_errors=True)
        os.close(handle)
    # Another process may see the folder before it is locked, and remove it.
    while True:
        prefix, suffix = f".{path.name}-", f".{_ASIDE}"
        aside = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=path.parent))
        if (held := _locked(aside, anyway=True)) is not None:
            break
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(held)


def _finish_folder(aside: Path) -> None:
    for item in (*aside.rglob("*"), aside):
        if stat.S_IFMT(item.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR):
            flush(item)
    aside.chmod(0o777 & ~_umask())


def _take_place(aside: Path, path: Path) -> None:
    old = aside.with_suffix(f".{_REPLACED}")
    try:
        path.replace(old)
        aside.replace(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.replace(path)
        raise
    flush(path.parent)
    _discard(old)


def _discard(old: Path) -> None:
    """Removes a folder that was replaced.

    Its name says that it is rubbish before a file of it goes, so that half of it is never put back.
    """
    rubbish = old.with_suffix(f".{_ASIDE}")
    old.replace(rubbish)
    flush(rubbish.parent)
    shutil.rmtree(rubbish, ignore_errors=True)


def _left_folders(path: Path, mark: str) -> Iterator[tuple[Path, int]]:
    """The marked folders of `path` that no live process has, each with a handle that locks it."""
    pattern = re.compile(rf"\.{re.escape(path.name)}-{_TOKEN}\.{mark}")
    if not path.parent.is_dir():
        return
    for left in sorted(path.parent.iterdir()):
        if not pattern.fullmatch(left.name):
            continue
        # Without locks nobody knows whether a folder is still being filled. To put an old folder
        # back is safe all the same: a live process then fails to rename the new one, and says so.
        with contextlib.suppress(PermissionError):
            if (handle := _locked(left, anyway=mark == _REPLACED)) is not None:
                yield left, handle


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _locked(folder: Path, *, anyway: bool) -> int | None:
    """A handle that locks the folder until it is closed; None if another has it or it is gone.

    Args:
        folder: the folder.
        anyway: whether to give a handle without a lock where the file system locks no folders,
            as NFS.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        wanted = True
    except OSError as error:
        wanted = anyway and not isinstance(error, BlockingIOError)
    # Renamed or removed between the calls, it is no longer the one that was asked for.
    with contextlib.suppress(FileNotFoundError):
        if wanted and os.path.samestat(os.fstat(handle), folder.stat()):
            return handle
    os.close(handle)
    return None
