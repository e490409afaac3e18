"""A manifest ties the files of a folder together by their SHA-256 checksums.

    {"format": 1, "files": {"best.npz": "9f86...", ...}, "replacing": {"best.npz": "60303..."}}

`replacing` is there only while files are being replaced. First all new files are written aside.
Then the manifest says both what the files are and what they will be, the files are renamed, and
the manifest says what they are. A process that is killed on the way leaves files each of which is
the old or the new one, and a manifest that takes both. Other keys are facts that somebody wants to
keep with the files; the manifest has no checksum of its own, so nothing tells whether they changed.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from dsa_keras.errors import RunError
from dsa_keras.files import finish, flush, is_aside, new_aside
from dsa_keras.locks import LOCK

FORMAT = 1
LIMIT = 16 * 1024 * 1024
_RESERVED = ("format", "files", "replacing")
_SUM = re.compile("[0-9a-f]{64}")
MARK = "replacing"
"""In the names of files that are not yet what they are going to be; see `files.is_aside`."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Content:
    """What a manifest says. A new sum of None says that the file is being removed."""

    files: Mapping[str, str] = field(default_factory=dict)
    replacing: Mapping[str, str | None] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def sums(self, name: str) -> list[str]:
        """Those the file may have; none if it does not belong to the folder."""
        return [one for one in (self.files.get(name), self.replacing.get(name)) if one]

    def may_miss(self, name: str) -> bool:
        """Whether the file is on its way in or out."""
        return name in self.replacing and not (self.files.get(name) and self.replacing[name])


class Manifest:
    """The manifest of a folder; nothing is read before it is asked for, and always anew.

    Hidden files that `dsa_keras.files` and `dsa_keras.locks` make in passing do not count as files
    of the folder.

    Args:
        folder: the folder.
        name: of the manifest's file, a path in the folder with "/".
        hint: what to do about a file that is wrong, for messages.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        name: str = "manifest.json",
        *,
        hint: str = "Restore the folder from a copy",
    ) -> None:
        self.folder = Path(folder)
        self.name = name
        self.path = self.folder / name
        self.hint = hint
        self._found: dict[str, str] | None = None

    @classmethod
    def of(
        cls,
        folder: str | os.PathLike[str],
        name: str = "manifest.json",
        *,
        ignore: Iterable[str] = (),
        hint: str = "Restore the folder from a copy",
    ) -> Manifest:
        """A manifest of all files that are in a folder now; `write` writes it.

        Args:
            folder: a complete folder.
            name: of the manifest's file.
            ignore: patterns of files to leave out, as `logs/*` ("*" stands for "/" too).
            hint: what to do about a file that is wrong, for messages.
        """
        manifest = cls(folder, name, hint=hint)
        manifest._found = {}
        for one in manifest._present(ignore):
            manifest._check_name(one)
            try:
                with manifest._open(one) as file:
                    manifest._found[one] = _digest(file)
            except OSError as error:
                raise manifest._wrong(one, f"cannot be read ({error.strerror})") from None
        return manifest

    @property
    def exists(self) -> bool:
        """Whether there is something of the manifest's name, right or damaged."""
        return os.path.lexists(self.path)

    @property
    def names(self) -> list[str]:
        """The files of the folder, sorted; while they are replaced, the old and the new ones."""
        content = self._read()
        return sorted(content.files.keys() | content.replacing.keys())

    @property
    def facts(self) -> dict[str, Any]:
        """What `write` got."""
        return dict(self._read().facts)

    def write(self, facts: Mapping[str, Any]) -> None:
        """Writes the checksums that `of` found, or leaves those that are there, with other facts.

        Args:
            facts: plain values, in place of those that are there. The manifest's own keys are
                refused.
        """
        if own := [key for key in _RESERVED if key in facts]:
            raise ValueError(f"{own[0]!r} is a key of the manifest itself")
        old = self._read() if self._found is None else _Content(self._found)
        self._write(_Content(old.files, old.replacing, facts))
        self._found = None

    def check(self, names: str | Iterable[str]) -> None:
        """Raises RunError unless the files of these names are the ones that belong here."""
        content = self._read()
        for name in [names] if isinstance(names, str) else names:
            self._check(name, content)

    def check_all(self, *, ignore: Iterable[str] = ()) -> None:
        """Raises RunError if a file is missing, changed or added.

        Args:
            ignore: patterns of files that may be added, as `logs/*` ("*" stands for "/" too).
        """
        ignore = list(ignore)
        content = self._read()
        for name in sorted(content.files.keys() | content.replacing.keys()):
            if content.may_miss(name) and not os.path.lexists(self.folder / name):
                continue
            self._check(name, content)
        for name in self._present(ignore):
            # Another process may have begun to replace files since.
            if name not in content.files and name not in self.names:
                raise RunError(
                    "does not belong here (the manifest does not list it)",
                    where=self.folder / name,
                    hint="Remove it",
                )

    def read_bytes(self, name: str) -> bytes:
        """Reads a file once, and checks what was read."""

        def read(file: BufferedReader) -> tuple[str, bytes]:
            with file:
                data = file.read()
            return hashlib.sha256(data).hexdigest(), data

        return self._take(name, read, self._read())

    def open_checked(self, name: str) -> BufferedReader:
        """Opens a file for reading, after its content was checked.

        Another file that takes its name afterwards does not matter: the one that was checked
        stays open. One that is changed in place would; ours never are.
        """

        def look(file: BufferedReader) -> tuple[str, BufferedReader]:
            digest = _digest(file)
            file.seek(0)
            return digest, file

        return self._take(name, look, self._read())

    @contextlib.contextmanager
    def replacing(self) -> Iterator[Replacement]:
        """Replaces files, or adds or removes some: all that the block asks for, or nothing.

        Nothing happens to the folder before the block ends, and nothing at all if it raises. If
        the process dies at the end of the block, each file is the old or the new one, and right.
        What an earlier process has left is settled first. Only one process at a time may do
        this: hold `dsa_keras.locks.locked` for as long. Readers need no lock.

        Example:
        ```python
        with manifest.replacing() as files:
            files.write("best.npz", lambda path: np.savez(path, **weights))
            files.remove("evaluation.json")
        ```
        """
        files = Replacement(self, self._settled())
        try:
            yield files
            files._commit()
        except BaseException:
            files._undo()
            raise

    def _settled(self) -> _Content | None:
        """What the manifest says, after the end of a replacement that was interrupted."""
        for name in self._walk():
            if is_aside(PurePosixPath(name).name, MARK):
                (self.folder / name).unlink(missing_ok=True)
        if not self.exists:
            return None
        content = self._read()
        if not content.replacing:
            return content
        files = dict(content.files)
        for name, new in content.replacing.items():
            try:
                with self._open(name) as file:
                    found = _digest(file)
            except FileNotFoundError:
                if new is None:
                    files.pop(name, None)
                continue
            except OSError as error:
                raise self._wrong(name, f"cannot be read ({error.strerror})") from None
            # A file that is neither stays wrong until it is replaced.
            if new is not None and found == new:
                files[name] = new
        content = _Content(files, {}, content.facts)
        self._write(content)
        return content

    def _check(self, name: str, content: _Content) -> None:
        def look(file: BufferedReader) -> tuple[str, None]:
            with file:
                return _digest(file), None

        self._take(name, look, content)

    def _take(
        self, name: str, how: Callable[[BufferedReader], tuple[str, _T]], content: _Content
    ) -> _T:
        """What `how` makes of a file, besides its checksum, if that is right.

        A file that is replaced after the manifest was read looks wrong. So the manifest is read
        again before anything is called wrong.
        """
        self._check_name(name)
        while True:
            sums = content.sums(name)
            if not sums:
                problem = "does not belong here (the manifest does not list it)"
            else:
                try:
                    file = self._open(name)
                    try:
                        digest, value = how(file)
                    except BaseException:
                        file.close()
                        raise
                    if digest in sums:
                        return value
                    file.close()
                    problem = "is not the file that belongs here (its checksum differs)"
                except (FileNotFoundError, NotADirectoryError):
                    problem = "is missing"
                except OSError as error:
                    problem = f"cannot be read ({error.strerror})"
            now = self._read()
            if now == content:
                raise self._wrong(name, problem)
            content = now

    def _open(self, name: str) -> BufferedReader:
        """Opens a regular file of the folder; a pipe must not keep us waiting."""
        path = self.folder / name
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(self.folder)):
            raise self._wrong(name, "is a link out of the folder")
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is not a file")
        return os.fdopen(handle, "rb")

    def _check_name(self, name: str) -> None:
        if not self._is_name(name):
            raise RunError(
                f"{name[:100]!r} is not the name of a file in the folder",
                where=self.path,
                hint=self.hint,
            )

    def _is_name(self, name: str) -> bool:
        pure = PurePosixPath(name)
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
        return (
            bool(pure.parts)
            and pure.as_posix() == name
            and not pure.is_absolute()
            and ".." not in pure.parts
            and "\0" not in name
            and not self._is_ours(name)
        )

    def _is_ours(self, name: str) -> bool:
        parts = PurePosixPath(name).parts
        return name in (self.name, LOCK) or any(
            is_aside(part) or is_aside(part, MARK) for part in parts
        )

    def _present(self, ignore: Iterable[str]) -> list[str]:
        ignore = list(ignore)
        return [
            name
            for name in self._walk()
            if not self._is_ours(name)
            and not any(fnmatch.fnmatchcase(name, pattern) for pattern in ignore)
        ]

    def _walk(self) -> list[str]:
        """All that is in the folder and its folders, and is no folder: links and pipes too."""

        def refuse(error: OSError) -> None:
            if error.errno != errno.ENOENT:
                raise RunError(f"cannot be read ({error.strerror})", where=error.filename)

        found = []
        for place, folders, files in os.walk(self.folder, onerror=refuse):
            links = [one for one in folders if (Path(place) / one).is_symlink()]
            found += [(Path(place) / one).relative_to(self.folder) for one in files + links]
        return sorted(one.as_posix() for one in found)

    def _wrong(self, name: str, problem: str) -> RunError:
        return RunError(problem, where=self.folder / name, hint=self.hint)

    def _read(self) -> _Content:
        try:
            with self._open(self.name) as file:
                data = file.read(LIMIT + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise self._wrong(self.name, "is missing") from None
        except OSError as error:
            raise self._wrong(self.name, f"cannot be read ({error.strerror})") from None
        try:
            return self._parsed(data)
        except (ValueError, RecursionError) as error:
            raise self._wrong(self.name, f"is damaged ({error})") from None

    def _parsed(self, data: bytes) -> _Content:
        """What the bytes of a manifest say; ValueError or RecursionError if they are none."""
        if len(data) > LIMIT:
            raise ValueError(f"larger than {LIMIT // 1024**2} MB")
        values = json.loads(data.decode(), object_pairs_hook=_once)
        if not isinstance(values, dict):
            raise ValueError("not a table")
        version = values.get("format")
        if type(version) is not int or version != FORMAT:
            raise ValueError(f"not of format {FORMAT}")
        for key in ("files", "replacing"):
            sums = values.get(key, {} if key == "replacing" else None)
            if not isinstance(sums, dict):
                raise ValueError(f"{key!r} is missing or no table")
            for name, one in sums.items():
                if not self._is_name(name):
                    raise ValueError(f"{name[:100]!r} is not the name of a file in the folder")
                gone = one is None and key == "replacing"
                if not gone and not (isinstance(one, str) and _SUM.fullmatch(one)):
                    raise ValueError(f"{name[:100]!r} has no checksum")
        facts = {key: value for key, value in values.items() if key not in _RESERVED}
        # Facts that JSON has a way to write, but we have not, could not be kept.
        json.dumps(facts, indent=2, ensure_ascii=False).encode()
        return _Content(values["files"], values.get("replacing", {}), facts)

    def _write(self, content: _Content) -> None:
        values = {"format": FORMAT, **content.facts, "files": dict(sorted(content.files.items()))}
        if content.replacing:
            values["replacing"] = dict(content.replacing)
        data = (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
        self._parsed(data)  # what could not be read is not written
        aside, _ = _written(self.path, lambda path: path.write_bytes(data))
        try:
            aside.replace(self.path)
        finally:
            aside.unlink(missing_ok=True)
        flush(self.path.parent)


class Replacement:
    """The files that a `Manifest.replacing` block writes and removes."""

    def __init__(self, manifest: Manifest, content: _Content | None) -> None:
        self._manifest = manifest
        self._known = content is not None
        self._content = content or _Content()
        # The new file and its checksum; None and None for one to remove.
        self._asked: dict[str, tuple[Path, str] | tuple[None, None]] = {}
        self._made: list[Path] = []

    def write(self, name: str, writer: Callable[[Path], object]) -> str:
        """Writes a new file aside; it is there under its name after the block.

        Args:
            name: a path in the folder with "/".
            writer: is called with the path to write to, which has the suffix of `name`.

        Returns:
            The file's checksum.
        """
        path = self._path(name)
        missing = [one for one in (path.parent, *path.parent.parents) if not one.exists()]
        self._made = [*(one for one in missing if one not in self._made), *self._made]
        aside, digest = _written(path, writer)
        self._forget(name)
        self._asked[name] = aside, digest
        return digest

    def remove(self, name: str) -> None:
        """Removes a file at the end of the block, if there is one."""
        self._path(name)
        self._forget(name)
        self._asked[name] = None, None

    def _path(self, name: str) -> Path:
        self._manifest._check_name(name)
        folder = self._manifest.folder
        path = folder / name
        # A link to another file of the folder is replaced; a folder must be a folder of ours.
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise self._manifest._wrong(name, "is a link out of the folder")
        return path

    def _forget(self, name: str) -> None:
        """The last one that is asked for under a name counts, at its place in the order."""
        aside, _ = self._asked.pop(name, (None, None))
        if aside is not None:
            aside.unlink(missing_ok=True)

    def _commit(self) -> None:
        if not self._asked:
            return
        manifest, old = self._manifest, self._content
        paths = {name: manifest.folder / name for name in self._asked}
        for path in paths.values():
            if path.is_dir() and not path.is_symlink():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        files = dict(old.files)
        if not self._known:
            # The files of a folder that had no manifest are taken as they are.
            for name, path in paths.items():
                if path.is_file():
                    with manifest._open(name) as file:
                        files[name] = _digest(file)
        # A file that is not listed may be removed too; it is nobody's business on the way.
        new = {name: one for name, (_, one) in self._asked.items() if one or name in files}
        for folder in {one.parent for one in self._made}:
            flush(folder)
        manifest._write(_Content(files, new, old.facts))
        for name, (aside, _) in self._asked.items():
            if aside is None:
                paths[name].unlink(missing_ok=True)
            else:
                aside.replace(paths[name])
        for folder in {path.parent for path in paths.values()}:
            if folder.is_dir():
                flush(folder)
        for name, (_, one) in self._asked.items():
            files.pop(name, None)
            if one is not None:
                files[name] = one
        manifest._write(_Content(files, {}, old.facts))

    def _undo(self) -> None:
        """Removes what was written aside and is still there, and folders made for it."""
        for name in list(self._asked):
            self._forget(name)
        for folder in sorted(self._made, key=lambda one: len(one.parts), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _written(path: Path, writer: Callable[[Path], object]) -> tuple[Path, str]:
    """A finished file beside `path`, and its checksum."""
    aside = new_aside(path, MARK)
    try:
        # A writer that writes to another path must not pass for one that wrote an empty file.
        aside.unlink()
        writer(aside)
        if not stat.S_ISREG(aside.lstat().st_mode):
            raise OSError(errno.EINVAL, "not a file", str(aside))
        finish(aside)
        with aside.open("rb") as file:
            return aside, _digest(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _digest(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key is there twice")
    return values
