"""What every reader shares: finding the files, reading their lines, judging their rows.

A `TextFile` is one text file, plain or inside an archive; it gives numbered lines, and every way a
file can be unreadable is a `DataError` that names it. Bytes that are not UTF-8 come through as
surrogates, so that a bad line is one bad row and not the end of the file. `BadRows` is the one
place where a bad row stops the load or is counted.

Limits: a sentence has at most 10,000 words (`MAX_WORDS`), a line at most 16 MiB (`MAX_LINE_BYTES`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dsa_keras.data.archives import list_members, open_member
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.progress import progress_bar

MAX_WORDS = 10_000
MAX_LINE_BYTES = 16 * 2**20


@dataclass(frozen=True)
class TextFile:
    """A text file, plain, gzipped or a member of a zip archive.

    Attributes:
        path: the file itself, or the archive that holds it.
        member: its name inside the archive `path`; None for a file of its own.
    """

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def name(self) -> str:
        """The name of the text file, without its folders and without `.gz`."""
        return PurePosixPath(self.member or self.path.as_posix()).name.removesuffix(".gz")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Gives (number, line with its line end), numbers from 1; a byte order mark is left out.

        Raises:
            DataError: if the file is missing, a directory, empty, UTF-16, or broken.
        """
        number = 0
        with (
            open_member(self.path, self.member) as stream,
            progress_bar(stream.size, f"reading {self.name}", unit="B", unit_scale=True) as bar,
        ):
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES:
                    raise DataError(
                        f"a line of more than {MAX_LINE_BYTES:,} bytes",
                        where=str(self),
                        line=number,
                        hint="Check that this is a text file with one example per line.",
                    )
                if number == 1:
                    raw = self._without_mark(raw)
                yield number, raw.decode("utf-8", "surrogateescape")
                bar.update(len(raw))
        if number == 0:  # an empty file is refused when it is opened, an empty member is not
            raise DataError("the file is empty", where=str(self), hint="Name another file.")

    def _without_mark(self, raw: bytes) -> bytes:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(
                "the file is UTF-16, not UTF-8", where=str(self), line=1, hint="Save it as UTF-8."
            )
        return raw.removeprefix(b"\xef\xbb\xbf")


class BadRows:
    """Stops at a bad row, or skips and counts it.

    Args:
        on_bad_rows: "error" raises at the first bad row, "skip" counts them.
    """

    def __init__(self, on_bad_rows: str) -> None:
        if on_bad_rows not in ("error", "skip"):
            raise ConfigError(
                f'on_bad_rows is {on_bad_rows!r}, not "error" or "skip"', where="on_bad_rows"
            )
        self.skips = on_bad_rows == "skip"
        self.count = 0

    def report(self, problem: str, source: TextFile, line: int, hint: str | None = None) -> None:
        """Raises a `DataError` for this row, or counts it."""
        if not self.skips:
            raise DataError(
                problem,
                where=str(source),
                line=line,
                hint=hint or 'Mend the row, or skip and count bad rows with on_bad_rows="skip".',
            )
        self.count += 1


def text_problem(text: str) -> str | None:
    """What is wrong with a sentence, or None."""
    if problem := encoding_problem(text):
        return problem
    # A text no longer than the limit in characters cannot have more words than that.
    words = len(text.split()) if len(text) > MAX_WORDS else None
    if words is not None and words > MAX_WORDS:
        return f"a sentence of {words:,} words; the limit is {MAX_WORDS:,}"
    if words == 0 or not text or text.isspace():
        return "an empty sentence"
    return None


def encoding_problem(text: str) -> str | None:
    """NUL bytes, bytes that are not UTF-8 or lone surrogates in a text; None if it is sound."""
    if "\0" in text:
        return "a NUL byte"
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return "bytes that are not UTF-8"
    return None


def json_object(line: str) -> dict[str, Any]:
    """Parses a line of a jsonl file.

    Raises:
        ValueError: with the problem in words, if it is not UTF-8 or not one JSON object.
    """
    if problem := encoding_problem(line):
        raise ValueError(problem)
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"malformed JSON at column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"malformed JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object ({...})")
    return row


def check_not_empty(rows: int, source: TextFile, bad: BadRows) -> None:
    """Refuses a file without rows.

    Raises:
        DataError: if there are none.
    """
    if not rows:
        skipped = f" ({bad.count:,} bad rows skipped)" if bad.count else ""
        raise DataError(
            f"no usable rows{skipped}",
            where=str(source),
            hint="Check that this is the right file and format.",
        )


@dataclass(frozen=True)
class Layout:
    """Where the files of an official data set may lie under a folder.

    Attributes:
        title: what to call the data set in messages.
        url: the official address of the archive.
        folders: folders under the data folder to look in, the likeliest first.
        files: per split, the file names to accept, the preferred first.
        complete: whether every split must be there; otherwise one is enough.
    """

    title: str
    url: str
    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    complete: bool

    @property
    def archive(self) -> str:
        """The file name of the official archive."""
        return self.url.rpartition("/")[2]

    def find(self, data_dir: str | os.PathLike[str] | None) -> dict[str, TextFile]:
        """Gives the file of each split.

        Args:
            data_dir: a folder that holds the files or the official archive, at its top or in one of
                `folders`, or the path of the archive itself.

        Raises:
            DataError: if nothing is there, or not every split that is needed; it names the places
                looked at.
        """
        if data_dir is None:
            raise DataError(f"{self.title} needs a data_dir", hint=self.instructions())
        root = Path(data_dir).expanduser()
        place = self._place(root)
        if place is None:
            places = ", ".join(str(root / folder) for folder in self.folders)
            raise DataError(f"{self.title} not found; looked in {places}", hint=self.instructions())
        found = self._in_archive(place) if place.is_file() else self._in_folder(place)
        missing = [names[0] for split, names in self.files.items() if split not in found]
        if missing and (self.complete or not found):
            raise DataError(
                f"{self.title}: no {', '.join(missing)} there",
                where=place,
                hint=self.instructions(),
            )
        return found

    def is_in(self, data_dir: str | os.PathLike[str]) -> bool:
        """Whether some of the data is there, sound or not."""
        return self._place(Path(data_dir).expanduser()) is not None

    def instructions(self) -> str:
        """What to put where."""
        names = ", ".join(names[0] for names in self.files.values())
        return (
            f"Download {self.url} and name the folder that holds {self.archive}, "
            f"or the files {names} from it."
        )

    def _place(self, root: Path) -> Path | None:
        """The folder of the files, or the archive."""
        if root.is_file():
            return root
        for folder in self.folders:
            if self._in_folder(root / folder):
                return root / folder
        archives = (root / folder / self.archive for folder in self.folders)
        return next((archive for archive in archives if archive.is_file()), None)

    def _in_folder(self, folder: Path) -> dict[str, TextFile]:
        return self._pick({n: TextFile(folder / n) for n in self._names() if (folder / n).exists()})

    def _in_archive(self, archive: Path) -> dict[str, TextFile]:
        members = {}
        for member in list_members(archive):
            path = PurePosixPath(member)
            if path.name in self._names():
                members[path.name] = TextFile(archive, member)
        return self._pick(members)

    def _names(self) -> set[str]:
        return {name for names in self.files.values() for name in names}

    def _pick(self, present: Mapping[str, TextFile]) -> dict[str, TextFile]:
        found = {}
        for split, names in self.files.items():
            for name in names:
                if name in present:
                    found[split] = present[name]
                    break
        return found
