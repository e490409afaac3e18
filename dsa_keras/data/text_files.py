"""One text file, plain or inside an archive, as numbered lines.

Every way a file can be unreadable is a `DataError` that names it. Bytes that are not UTF-8 come
through as surrogates, so that a bad line is one bad row and not the end of the file; a file that is
said to be of another encoding must be so from end to end.

Limits: a sentence has at most 10,000 words (`MAX_WORDS`), a line at most 16 MiB (`MAX_LINE_BYTES`).
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from dsa_keras.data.archives import open_member
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.progress import progress_bar

MAX_WORDS = 10_000
MAX_LINE_BYTES = 16 * 2**20

UTF_8 = "utf-8"
NAME_ENCODING = "Save it as UTF-8, or name its encoding by --encoding"
"""The hint of commands that have this option."""

_MARK = "\ufeff"


def checked_encoding(name: str) -> str:
    """The usual name of an encoding.

    Raises:
        ConfigError: if there is none of this name.
    """
    try:
        " ".encode(name)
        return codecs.lookup(name).name.removesuffix("-sig")
    except (LookupError, ValueError):
        raise ConfigError(
            f"unknown encoding {name!r:.60}",
            where="--encoding",
            hint="Give one that Python knows, such as cp1252, latin-1 or utf-16",
        ) from None


def lines_in(stream: IO[bytes], encoding: str, where: str) -> Iterator[str]:
    """The lines of a binary stream in an encoding that is not UTF-8, with their line ends.

    Raises:
        DataError: if it has something else in it.
    """
    text = io.TextIOWrapper(stream, encoding, errors="strict", newline="\n")
    try:
        first = True
        while line := text.readline(MAX_LINE_BYTES + 1):
            yield line.removeprefix(_MARK) if first else line
            first = False
    except UnicodeError as error:
        raise DataError(
            f"the text is not {encoding} ({error})",
            where=where,
            hint="Name another by --encoding",
        ) from None
    finally:
        # Who opened the stream closes it.
        text.detach()


@dataclass(frozen=True)
class TextFile:
    """A text file, plain, gzipped or a member of a zip archive.

    Attributes:
        path: the file itself, or the archive that holds it.
        member: its name inside the archive `path`; None for a file of its own.
        encoding: of the text, where a person can name it; None where it must be UTF-8.
    """

    path: Path
    member: str | None = None
    encoding: str | None = None

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
            for number, (line, size) in enumerate(self._decoded(stream), start=1):
                if size > MAX_LINE_BYTES:
                    raise DataError(
                        f"a line of more than {MAX_LINE_BYTES:,} bytes",
                        where=str(self),
                        line=number,
                        hint="Check that this is a text file with one example per line",
                    )
                yield number, line
                bar.update(size)
        if number == 0:  # an empty file is refused when it is opened, an empty member is not
            raise DataError("the file is empty", where=str(self), hint="Name another file")

    def _decoded(self, stream: IO[bytes]) -> Iterator[tuple[str, int]]:
        """The lines, and how long they are."""
        if self.encoding not in (None, UTF_8):
            for line in lines_in(stream, self.encoding, str(self)):
                yield line, len(line)
            return
        first = True
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            text = self._without_mark(raw) if first else raw
            yield text.decode(UTF_8, "surrogateescape"), len(raw)
            first = False

    def _without_mark(self, raw: bytes) -> bytes:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(
                "the file is UTF-16, not UTF-8",
                where=str(self),
                line=1,
                hint=NAME_ENCODING if self.encoding else "Save it as UTF-8",
            )
        return raw.removeprefix(b"\xef\xbb\xbf")
