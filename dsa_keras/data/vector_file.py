"""One text file of word vectors, read as fast as Python reads lines.

The file is read in blocks of a megabyte, never whole. NumPy counts the spaces of every row of
a block at once, which finds rows with too few or too many numbers for less than it costs to split
lines; only the rows of wanted words are parsed, many at a time. A row with more spaces than numbers
is a word with spaces in it (GloVe 840B has ". . ."): it is split from the right, unless all its
extra fields are numbers too, for then the row has another dimension than the first one. The numbers
of rows that nobody wants are counted, but not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dsa_keras.data.archives import open_member
from dsa_keras.data.decimals import parse_decimals
from dsa_keras.errors import DataError
from dsa_keras.progress import progress_bar

_BLOCK = 2**20
_BATCH = 64
_LONGEST_LINE = 2**20
_LARGEST = float(np.finfo(np.float32).max)
_BOM = b"\xef\xbb\xbf"
_HINT = 'Repair the row, or give on_bad_rows="skip" to leave such rows out and count them'


class VectorFile:
    """One file of vectors: what its first row tells, and a pass over its rows."""

    def __init__(self, path: Path, dimension: int | None, skip_bad_rows: bool) -> None:
        self.path = path
        self.bad_rows = 0
        self._skip = skip_bad_rows
        self._good_rows = 0
        with open_member(path) as stream:
            first = self._rest_of_line(stream)
        if b"\0" in first:
            raise DataError("NUL byte", where=path, line=1, hint="Save the file as UTF-8 text")
        fields = first.removeprefix(_BOM).split()
        self._has_header = len(fields) == 2 and all(field.isdigit() for field in fields)
        if self._has_header:
            self.dimension = int(fields[1])
        else:
            # The word may have spaces in it, or be a number itself.
            self.dimension = next(
                (n for n, field in enumerate(reversed(fields)) if not _is_number(field)),
                len(fields) - 1,
            )
        if self.dimension < 1:
            hint = "A row is a word and its numbers, separated by single spaces"
            raise DataError("is no row of a vector file", where=path, line=1, hint=hint)
        if dimension is not None and self.dimension != dimension:
            problem = f"has {self.dimension} numbers a row, not {dimension}"
            raise DataError(problem, where=path, line=1, hint="Give the dimension of the file")

    def find(
        self, wanted: Collection[bytes], show_progress: bool
    ) -> Iterator[tuple[bytes, np.ndarray]]:
        """The word and vector of each row whose word is in `wanted`, in the order of the file."""
        line = 1
        with (
            open_member(self.path) as stream,
            progress_bar(
                stream.size,
                f"Reading {self.path.name}",
                show=show_progress,
                unit="B",
                unit_scale=True,
            ) as bar,
        ):
            hits: list[tuple[bytes, bytes, int]] = []
            for block in self._blocks(stream):
                words, starts = self._words(block, line)
                for index in [i for i, word in enumerate(words) if word in wanted]:
                    row = block[starts[index] : block.find(b"\n", starts[index])]
                    hits.append((words[index], row, line + index))
                if len(hits) >= _BATCH:
                    yield from self._vectors(hits)
                    hits = []
                line += len(words)
                bar.update(len(block))
            yield from self._vectors(hits)
        if not self._good_rows:
            raise DataError("has no usable row", where=self.path, hint="Check the file")

    def _blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        """The file in pieces of whole lines, each line with its end."""
        while block := stream.read(_BLOCK):
            if not block.endswith(b"\n"):
                rest = self._rest_of_line(stream)
                block += rest if rest.endswith(b"\n") else rest + b"\n"
            yield block

    def _rest_of_line(self, stream: BinaryIO) -> bytes:
        rest = stream.readline(_LONGEST_LINE)
        if len(rest) == _LONGEST_LINE:
            hint = "A vector file has one word a line"
            raise DataError("a line is over a megabyte long", where=self.path, hint=hint)
        return rest

    def _words(self, block: bytes, first_line: int) -> tuple[list[bytes], list[int]]:
        """The word of each row of a block, empty for bad rows, and where each row starts."""
        find = block.find
        words, starts, start = [], [], 0
        while end := find(b"\n", start) + 1:
            words.append(block[start : find(b" ", start)])
            starts.append(start)
            start = end
        spaces = _counts_between(block, b" ", starts)
        bad = 0
        for index in np.flatnonzero(spaces != self.dimension).tolist():
            row = block[starts[index] : find(b"\n", starts[index])]
            if first_line + index == 1 and self._has_header:
                words[index] = b""
                continue
            word, problem = self._irregular(row)
            words[index] = word
            if problem is not None:
                self._bad_row(problem, first_line + index)
                bad += 1
        if first_line == 1:
            words[0] = b"" if self._has_header else words[0].removeprefix(_BOM)
        bad += self._check_text(block, words, starts, first_line)
        self._good_rows += len(words) - bad - (first_line == 1 and self._has_header)
        return words, starts

    def _irregular(self, row: bytes) -> tuple[bytes, str | None]:
        """The word of a row that has not one space per number, and what is wrong, if anything."""
        fields = row.rstrip().split(b" ")
        surplus = len(fields) - 1 - self.dimension
        if surplus == 0:
            return fields[0], None
        if surplus < 0 or all(_is_number(field) for field in fields[1 : surplus + 1]):
            return b"", f"{len(fields) - 1} numbers instead of {self.dimension}"
        return b" ".join(fields[: surplus + 1]), None

    def _check_text(
        self, block: bytes, words: list[bytes], starts: list[int], first_line: int
    ) -> int:
        """Empties the words of rows that are not UTF-8 text; gives their number."""
        try:
            b"\n".join(words).decode()
        except UnicodeDecodeError:
            pass
        else:
            if b"\0" not in block:
                return 0
        bad = 0
        for index, start in enumerate(starts):
            row = block[start : block.find(b"\n", start)]
            problem = None
            if b"\0" in row:
                problem = "NUL byte"
            else:
                try:
                    words[index].decode()
                except UnicodeDecodeError:
                    problem = f"the word {words[index][:40]!r} is not UTF-8"
            if problem is not None:
                self._bad_row(problem, first_line + index)
                words[index] = b""
                bad += 1
        return bad

    def _vectors(self, hits: list[tuple[bytes, bytes, int]]) -> Iterator[tuple[bytes, np.ndarray]]:
        """The word and vector of each (word, row, line)."""
        numbers = [row.removeprefix(_BOM)[len(word) + 1 :].rstrip() for word, row, _ in hits]
        plain = _parse_plain([text for text in numbers if b"e" not in text], self.dimension)
        for (word, _, line), text in zip(hits, numbers, strict=True):
            if text in plain:
                yield word, plain[text]
            elif (vector := self._parsed(text, line)) is not None:
                yield word, vector

    def _parsed(self, text: bytes, line: int) -> np.ndarray | None:
        """The finite numbers in `text`, in any notation; None for a bad row."""
        fields = text.split(b" ")
        try:
            vector = np.array([float(field) for field in fields])
            if len(vector) == self.dimension and (np.abs(vector) <= _LARGEST).all():
                return vector
        except ValueError:
            pass
        bad = next((field for field in fields if not _is_number(field)), None)
        if bad is None:
            self._bad_row(f"{len(fields)} numbers instead of {self.dimension}", line)
        else:
            self._bad_row(f"{bad[:40].decode(errors='replace')!r} is not a number", line)
        self._good_rows -= 1
        return None

    def _bad_row(self, problem: str, line: int) -> None:
        if not self._skip:
            raise DataError(problem, where=self.path, line=line, hint=_HINT)
        self.bad_rows += 1


def _counts_between(block: bytes, character: bytes, starts: list[int]) -> np.ndarray:
    """How often `character` occurs from each of `starts` to the next, the last to the block's end.

    The occurrences become bits, 64 to a word: a running sum over words then counts all that lie
    before any position.
    """
    mask = np.empty(len(block) // 64 * 64 + 64, bool)
    np.equal(np.frombuffer(block, np.uint8), ord(character), out=mask[: len(block)])
    mask[len(block) :] = False
    bits = np.packbits(mask, bitorder="little").view("<u8")
    before_word = np.zeros(len(bits) + 1, np.int64)
    np.cumsum(np.bitwise_count(bits), out=before_word[1:])
    positions = np.array([*starts, len(block)], np.uint64)
    word, bit = positions >> np.uint64(6), positions & np.uint64(63)
    within = bits[word] & ((np.uint64(1) << bit) - np.uint64(1))
    return np.diff(before_word[word] + np.bitwise_count(within))


def _parse_plain(texts: list[bytes], dimension: int) -> dict[bytes, np.ndarray]:
    """The numbers of those of `texts` that are `dimension` plain decimals."""
    numbers = parse_decimals(b" ".join(texts)) if texts else np.empty(0)
    if numbers is not None and numbers.size == len(texts) * dimension:
        return dict(zip(texts, numbers.reshape(len(texts), dimension), strict=True))
    if len(texts) <= 4:
        return {}
    # A single odd number must not cost the whole batch.
    half = len(texts) // 2
    return _parse_plain(texts[:half], dimension) | _parse_plain(texts[half:], dimension)


def _is_number(field: bytes) -> bool:
    """Whether `field` is a number that float32 can hold."""
    try:
        return abs(float(field)) <= _LARGEST
    except ValueError:
        return False
