"""Sentences in, results out, some thousand at a time: memory does not grow with the file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

from dsa_keras.data.text_files import NAME_ENCODING, UTF_8, TextFile, lines_in
from dsa_keras.errors import DataError
from dsa_keras.files import written_aside

T = TypeVar("T")

CHUNK = 4096
"""Sentences that are held in memory at a time."""


def read_lines(path: str, encoding: str = UTF_8) -> Iterator[str]:
    """The lines of a file, plain or .gz or .zip, or of standard input for `-`; empty ones too.

    Args:
        path: the file.
        encoding: of the text.

    Raises:
        DataError: if the file cannot be read, has no line, or a line is not UTF-8.
    """
    number = 0
    for number, line in _numbered(path, encoding):
        try:
            line.encode()
        except UnicodeEncodeError:
            raise DataError(
                "the line is not UTF-8",
                where=source_name(path),
                line=number,
                hint=NAME_ENCODING,
            ) from None
        yield line.rstrip("\r\n")
    if number == 0:
        raise DataError(
            "there is no line to read", where=source_name(path), hint="Write one sentence a line"
        )


def in_chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Lists of at most `size` items; takes no more from `items` than it gives."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


@contextlib.contextmanager
def text_output(path: Path | None) -> Iterator[IO[str]]:
    """A file that appears when it is complete, or standard output."""
    if path is None:
        yield sys.stdout
        return
    with written_aside(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        yield file


def refuse_existing(path: Path | None, force: bool) -> None:
    """Nothing is overwritten unless the user says so."""
    if path is None:
        return
    if path.is_dir():
        raise DataError("is a directory", where=path, hint="Give the name of a file")
    if path.exists() and not force:
        raise DataError(
            "the file exists", where=path, hint="Choose another --output, or overwrite with --force"
        )


def _numbered(path: str, encoding: str) -> Iterator[tuple[int, str]]:
    if path != "-":
        yield from TextFile(Path(path), encoding=encoding).lines()
        return
    if encoding != UTF_8:
        yield from enumerate(lines_in(sys.stdin.buffer, encoding, source_name(path)), start=1)
        return
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        yield number, raw.decode(UTF_8, "surrogateescape")


def source_name(path: str) -> str:
    """What to call it in messages."""
    return "standard input" if path == "-" else path
