"""Text files as they come: plain, gzipped, or inside a zip archive, read as a stream of bytes.

Nothing is ever extracted to disk. Archives come from the network, so they are not trusted: member
names that would leave a folder, links and encrypted members are refused, and so is data that
expands beyond reason (a decompression bomb): over 100 MiB and more than 200 times its compressed
size, whether the archive declares it or it shows while reading. Text compresses 2 to 10 times. What
the file is, is told by its first bytes, not by its name.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from dsa_keras.errors import DataError

LARGEST_UNCHECKED = 100 * 2**20
"""Bytes that any archive may expand to."""
HIGHEST_RATIO = 200
"""How many times its compressed size a member beyond `LARGEST_UNCHECKED` may have."""

_BROKEN = (EOFError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, NotImplementedError)
_INCOMPLETE = "The file is probably incomplete: fetch it again"


class MemberStream(io.BufferedReader):
    """A buffered binary stream that knows what it reads.

    Attributes:
        member: name of the member, or of the file itself if it is no zip archive.
        size: bytes it will give, or None where that is not known (gzip).
    """

    def __init__(self, raw: io.RawIOBase, member: str, size: int | None) -> None:
        super().__init__(raw, buffer_size=2**16)
        self.member, self.size = member, size


def check_file(path: str | os.PathLike[str]) -> Path:
    """Gives `path` if it is a readable file that is not empty.

    Raises:
        DataError: if it is missing, a directory, a pipe, empty or may not be read.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise DataError("is a directory", where=path, hint="Give the file itself")
        if path.exists() and not path.is_file():
            # Files are opened more than once; what was read of a pipe would be lost.
            raise DataError(
                "is a pipe or a device",
                where=path,
                hint="Give a file, or - and standard input to commands that read sentences",
            )
        with path.open("rb") as file:
            if not file.read(1):
                raise DataError("the file is empty", where=path, hint=_INCOMPLETE)
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint="Check the path") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=path) from error
    return path


def list_members(path: str | os.PathLike[str]) -> list[str]:
    """Names of the files in a zip archive, in its order; for any other file, its own name.

    Folders and the side-car files of macOS (`__MACOSX/`) are left out.

    Raises:
        DataError: if the file cannot be read or the archive is broken or unsafe.
    """
    path = check_file(path)
    if _kind(path) != "zip":
        return [path.name]
    with _zip_archive(path) as archive:
        return [info.filename for info in _checked_members(path, archive)]


@contextlib.contextmanager
def open_member(
    path: str | os.PathLike[str], name: str | None = None, *, suffix: str = ".txt"
) -> Iterator[MemberStream]:
    """Opens a plain file, a gzipped file or one member of a zip archive as a stream of bytes.

    Args:
        path: the file.
        name: which member of a zip archive. None takes its only file, or the only one that ends in
            `suffix`.
        suffix: see `name`.

    Raises:
        DataError: on opening or while reading, if the file is missing, broken, truncated or unsafe,
            or if `name` does not say which one of several members to read.
    """
    path = check_file(path)
    kind = _kind(path)
    with contextlib.ExitStack() as stack:
        raw: io.RawIOBase
        if kind == "zip":
            archive = stack.enter_context(_zip_archive(path))
            info = _choose(path, _checked_members(path, archive), name, suffix)
            try:
                source: Any = stack.enter_context(archive.open(info))
            except (*_BROKEN, RuntimeError) as error:
                raise DataError(
                    f"broken zip archive ({error})", where=path, hint=_INCOMPLETE
                ) from error
            raw = _Guarded(source, path, info.compress_size)
            member, size = info.filename, info.file_size
        elif kind == "gz":
            source = stack.enter_context(gzip.open(path, "rb"))
            raw = _Guarded(source, path, path.stat().st_size)
            member, size = path.name, None
        else:
            raw = io.FileIO(path)
            member, size = path.name, path.stat().st_size
        yield stack.enter_context(MemberStream(raw, member, size))


class _Guarded(io.RawIOBase):
    """A decompressing stream whose failures are `DataError`s and whose output is bounded."""

    def __init__(self, source: Any, path: Path, compressed_size: int) -> None:
        self._source, self._path = source, path
        self._allowed = _allowed_size(compressed_size)
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._source.readinto(buffer)
        except _BROKEN as error:
            raise DataError(
                f"the compressed data is truncated or damaged ({error})",
                where=self._path,
                hint=_INCOMPLETE,
            ) from error
        self._given += count
        if self._given > self._allowed:
            raise _bomb(self._path)
        return count


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        magic = file.read(4)
    kind = {b"PK": "zip", b"\x1f\x8b": "gz"}.get(magic[:2], "plain")
    if kind == "zip" and magic[2:] not in (b"\3\4", b"\5\6", b"\7\x08"):
        kind = "plain"
    promised = path.suffix.lower().removeprefix(".")
    if promised in ("zip", "gz") and promised != kind:
        raise DataError(f"is not a .{promised} file", where=path, hint=_INCOMPLETE)
    return kind


@contextlib.contextmanager
def _zip_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DataError(
            f"truncated or damaged zip archive ({error})", where=path, hint=_INCOMPLETE
        ) from error
    with archive:
        yield archive


def _checked_members(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive, once every member has passed the checks."""
    for info in archive.infolist():
        name = info.filename.replace("\\", "/")
        if ".." in PurePosixPath(name).parts or name.startswith("/") or name[1:2] == ":":
            problem = f"the member {info.filename!r} points outside the archive"
        elif stat.S_ISLNK(info.external_attr >> 16):
            problem = f"the member {info.filename!r} is a symbolic link"
        elif info.flag_bits & 1:
            problem = f"the member {info.filename!r} is encrypted"
        else:
            if info.file_size > _allowed_size(info.compress_size):
                raise _bomb(path)
            continue
        raise DataError(
            problem, where=path, hint="Unpack it yourself if you trust it, and give the files"
        )
    return [
        info
        for info in archive.infolist()
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]


def _choose(
    path: Path, members: list[zipfile.ZipInfo], name: str | None, suffix: str
) -> zipfile.ZipInfo:
    listed = ", ".join(info.filename for info in members[:5]) + (
        ", ..." if len(members) > 5 else ""
    )
    if name is not None:
        chosen = [info for info in members if info.filename == name]
        wanted = f"member {name!r}"
    else:
        ending = [info for info in members if info.filename.endswith(suffix)]
        chosen = members if len(members) == 1 else ending
        wanted = f"{suffix} file"
    if not chosen:
        raise DataError(f"has no {wanted}", where=path, hint=f"It has: {listed or 'nothing'}")
    if len(chosen) > 1:
        raise DataError(
            f"has more than one {wanted} ({listed})",
            where=path,
            hint="Unpack the one you want and give its path",
        )
    return chosen[0]


def _allowed_size(compressed_size: int) -> int:
    return max(LARGEST_UNCHECKED, HIGHEST_RATIO * compressed_size)


def _bomb(path: Path) -> DataError:
    return DataError(
        f"expands to more than {LARGEST_UNCHECKED // 2**20} MiB and {HIGHEST_RATIO} times its "
        "size: a decompression bomb",
        where=path,
        hint="Unpack it yourself if you trust it, and give the files",
    )
