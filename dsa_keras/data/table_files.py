"""Tables of text as records by line: csv, tsv and jsonl, plain, `.gz` or in a `.zip`; and Parquet.

The format comes from the suffix. A csv or tsv starts with a header. A csv is read strictly, so an
unbalanced quote is an error, and what separates its columns is found out from its header: a comma,
a semicolon, a tab or a bar. A tsv has no quoting: a quote is a character like any other. Blank
lines are ignored.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsa_keras.data import parquet_files
from dsa_keras.data.archives import list_members
from dsa_keras.data.bad_rows import NOT_UTF_8, json_object
from dsa_keras.data.text_files import UTF_8, TextFile, checked_encoding
from dsa_keras.errors import DataError, nearest

TEXT_FORMATS = (".csv", ".tsv", ".jsonl")
"""The suffixes of tables that are text, which may be packed."""

FORMATS = (*TEXT_FORMATS, parquet_files.SUFFIX)
"""The suffixes of all tables."""

_DELIMITERS = ",;\t|"
_SAMPLE = 20
"""Lines that are looked at to find the delimiter."""

_BATCH = 4096
"""Rows of a Parquet file that are held in memory at a time."""

Report = Callable[[str, int], None]
"""Is told of a bad row, the problem and the line: raises, or counts it."""


@dataclass(frozen=True)
class Wanted:
    """The columns that a table must have.

    Attributes:
        columns: their names.
        options: what a person types to name them, such as `--text-column`.
        unique: whether the other columns are kept, so that each needs a name of its own.
    """

    columns: Sequence[str]
    options: str = "option"
    unique: bool = False

    def problem(self, present: Sequence[str]) -> str | None:
        """What is wrong with the columns of a table, or None."""
        for name in self.columns:
            if name not in present:
                return f"no column {name!r}. {nearest(name, present)}"
        for name in present if self.unique else self.columns:
            if present.count(name) > 1:
                return f"more than one column {name!r}"
        return None


def is_table(path: Path) -> bool:
    """Whether a file is a table by its suffix, or a zip archive with one in it.

    Raises:
        DataError: if it is an archive that cannot be read.
    """
    names = list_members(path) if path.suffix.lower() == ".zip" else [path.name]
    return parquet_files.is_parquet(path) or any(_format(name) for name in names)


def table_file(path: Path, encoding: str = UTF_8) -> TextFile:
    """The file to read; for a zip archive, its one member with a known suffix.

    Args:
        path: the file.
        encoding: of a table that is text.

    Raises:
        ConfigError: if there is no such encoding.
        DataError: if there is no such file.
    """
    encoding = checked_encoding(encoding)
    if path.suffix.lower() != ".zip":
        if not _format(path.name) and not parquet_files.is_parquet(path):
            raise DataError(
                "unknown format",
                where=path,
                hint=f"Name a file that ends in {', '.join(FORMATS)}; .gz may follow if it is text",
            )
        return TextFile(path, encoding=encoding)
    members = [name for name in list_members(path) if _format(name)]
    if len(members) != 1:
        raise DataError(
            f"{len(members)} files of a known format in the archive",
            where=path,
            hint=f"It must hold one file that ends in {', '.join(TEXT_FORMATS)}",
        )
    return TextFile(path, members[0], encoding)


def read_records(
    source: TextFile, wanted: Wanted, report: Report
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a table by their columns, each with the line where it starts.

    Args:
        source: the file, as `table_file` gives it.
        wanted: the columns that it must have.
        report: is told of bad rows.

    Raises:
        DataError: if the file cannot be read, or its header cannot be used.
    """
    if parquet_files.is_parquet(source.path):
        return _parquet_records(source.path, wanted)
    form = _format(source.name)
    if form == ".jsonl":
        return _json_records(source, wanted, report)
    return _table_records(source, wanted, report, is_tsv=form == ".tsv")


def told_encoding(problem: str) -> str:
    """A problem of a row, with the option that helps if the file is of another encoding."""
    return f"{problem}: name its encoding by --encoding" if problem == NOT_UTF_8 else problem


def delimiter_of(lines: Sequence[str], columns: Sequence[str] = ()) -> str:
    """What separates the columns of a csv.

    It is what gives the header the most of the columns that are asked for; then the most columns;
    then the one that the rows agree with. If nothing tells, it is a comma.

    Args:
        lines: the first lines of the file.
        columns: names that are expected in the header.
    """

    def merit(delimiter: str) -> tuple[int, int, int]:
        header, *rows = itertools.chain(_parsed(lines, delimiter), [[]])
        names = [name.strip() for name in header]
        known = sum(name in names for name in columns)
        return known, len(names), sum(len(row) == len(names) for row in rows)

    # Of equals, `max` takes the first.
    return max(_DELIMITERS, key=merit)


def _parsed(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The rows of the first lines, as far as they can be read."""
    try:
        for fields in csv.reader(lines, delimiter=delimiter, strict=True):
            if fields:
                yield fields
    except csv.Error:
        return


def _format(name: str) -> str | None:
    name = name.lower().removesuffix(".gz")
    return next((one for one in TEXT_FORMATS if name.endswith(one)), None)


def check_parquet(path: Path, wanted: Wanted) -> None:
    """Raises DataError if a Parquet file has not the columns that it must have."""
    if problem := wanted.problem(parquet_files.parquet_columns(path)):
        raise DataError(problem, where=path, hint=f"Name the columns by {wanted.options}")


def _parquet_records(path: Path, wanted: Wanted) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a Parquet file; the number of the row stands for the line."""
    check_parquet(path, wanted)
    done = 0
    for batch in parquet_files.read_batches(path, _BATCH, wanted.columns):
        yield from enumerate(batch.to_pylist(), start=done + 1)
        done += len(batch)


def _json_records(
    source: TextFile, wanted: Wanted, report: Report
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            record = json_object(line)
        except ValueError as error:
            report(told_encoding(str(error)), number)
            continue
        if problem := wanted.problem(list(record)):
            report(problem, number)
            continue
        yield number, record


def _table_records(
    source: TextFile, wanted: Wanted, report: Report, *, is_tsv: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows under their header; a record may span lines, and is named by its first."""
    lines: Iterable[str] = (line for _, line in source.lines())
    delimiter = "\t"
    if not is_tsv:
        first = list(itertools.islice(lines, _SAMPLE))
        delimiter = delimiter_of(first, wanted.columns)
        lines = itertools.chain(first, lines)
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL,
        strict=True,
    )
    header: list[str] | None = None
    while True:
        first_line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last_line = reader.line_num
            if header is None or last_line > first_line or "unexpected end" in str(error):
                # The quote swallowed the header, or rows that nobody can count: never skipped.
                raise DataError(
                    f"unbalanced quotes in the row that starts here: {error}",
                    where=str(source),
                    line=first_line,
                    hint='Write a quote inside a quoted field twice ("")',
                ) from error
            report(_csv_problem(error), first_line)
            continue
        if not fields:
            continue
        if header is None:
            header = [name.strip() for name in fields]
            if problem := wanted.problem(header):
                raise DataError(
                    problem,
                    where=str(source),
                    line=first_line,
                    hint=f"Name the columns by {wanted.options}",
                )
        elif len(fields) != len(header):
            report(f"{len(fields)} columns, not {len(header)}", first_line)
        else:
            yield first_line, dict(zip(header, fields, strict=True))


def _csv_problem(error: csv.Error) -> str:
    if "field limit" in str(error):
        return f"a field of more than {csv.field_size_limit():,} characters"
    return f"unbalanced quotes or a stray line end: {error}"
