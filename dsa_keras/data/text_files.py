"""One text file, plain or inside an archive, as numbered lines.

Every way a file can be unreadable is a `DataError` that names it. Bytes that are not UTF-8 come
through as surrogates, so that a bad line is one bad row and not the end of the file.

Limits: a sentence has at most 10,000 words (`MAX_WORDS`), a line at most 16 MiB (`MAX_LINE_BYTES`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dsa_keras.data.archives import open_member
from dsa_keras.errors import DataError
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
                        hint="Check that this is a text file with one example per line",
                    )
                if number == 1:
                    raw = self._without_mark(raw)
                yield number, raw.decode("utf-8", "surrogateescape")
                bar.update(len(raw))
        if number == 0:  # an empty file is refused when it is opened, an empty member is not
            raise DataError("the file is empty", where=str(self), hint="Name another file")

    def _without_mark(self, raw: bytes) -> bytes:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(
                "the file is UTF-16, not UTF-8", where=str(self), line=1, hint="Save it as UTF-8"
            )
        return raw.removeprefix(b"\xef\xbb\xbf")
