"""The rows of a csv, tsv or jsonl file, plain, `.gz` or `.zip`, each one checked.

The format comes from the suffix. A csv or tsv starts with a header; columns (jsonl: keys) are named
by option. A csv is read strictly, so an unbalanced quote is an error; a tsv has no quoting: a quote
is a character like any other. Blank lines are ignored, other columns are not looked at.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsa_keras.data.archives import list_members
from dsa_keras.data.bad_rows import BadRows, json_object, text_problem
from dsa_keras.data.text_files import TextFile
from dsa_keras.datasets.fractions import SPLITS
from dsa_keras.errors import DataError, nearest
from dsa_keras.inputs import Text
from dsa_keras.objectives import Objective

FORMATS = (".csv", ".tsv", ".jsonl")
_SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read.

    Attributes:
        text: the sentence, or the first of two.
        pair: the second sentence, or None.
        label: the target, such as a class or a number.
        split: the split each row belongs to, or None.
    """

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    split: str | None = None

    def names(self) -> list[str]:
        """The columns a file must have."""
        return [name for name in (self.text, self.pair, self.label, self.split) if name is not None]


@dataclass(frozen=True)
class TableRow:
    """A checked row and its line in the file.

    Attributes:
        text: the text.
        target: what the objective made of the label.
        split: the split it belongs to, if a column says so.
        line: where it stands.
    """

    text: Text
    target: Any
    split: str | None
    line: int


def table_file(path: Path) -> TextFile:
    """The file to read; for a zip archive, its one member with a known suffix."""
    if path.suffix != ".zip":
        source = TextFile(path)
        if not source.name.endswith(FORMATS):
            raise DataError(
                "unknown format",
                where=path,
                hint=f"Name a file that ends in {', '.join(FORMATS)}, also with .gz after it",
            )
        return source
    members = [name for name in list_members(path) if name.endswith(FORMATS)]
    if len(members) != 1:
        raise DataError(
            f"{len(members)} files of a known format in the archive",
            where=path,
            hint=f"It must hold one file that ends in {', '.join(FORMATS)}",
        )
    return TextFile(path, members[0])


def read_rows(
    source: TextFile, columns: Columns, kind: type[Objective], bad: BadRows
) -> list[TableRow]:
    """Reads and checks all rows of a file.

    Args:
        source: the file.
        columns: what to read.
        kind: the objective that knows what a label is.
        bad: stops at a bad row, or counts it.

    Raises:
        DataError: with file and line, if the file cannot be read or a bad row stops it.
    """
    if source.name.endswith(".jsonl"):
        records = _json_records(source, columns, bad)
    else:
        records = _table_records(source, columns, bad)
    rows = []
    for line, record in records:
        row = _checked_row(record, columns, kind, line)
        if isinstance(row, str):
            bad.report(row, source, line)
        else:
            rows.append(row)
    return rows


def _checked_row(
    record: dict[str, Any], columns: Columns, kind: type[Objective], line: int
) -> TableRow | str:
    """The row, or what is wrong with it."""
    texts = [record[name] for name in (columns.text, columns.pair) if name is not None]
    for text in texts:
        if not isinstance(text, str):
            return f"a sentence that is not a string: {str(text)[:40]!r}"
        if problem := text_problem(text):
            return problem
    try:
        target = kind.parsed(record[columns.label])
    except ValueError as error:
        return str(error)
    split = None
    if columns.split is not None:
        split = _SPLIT_NAMES.get(str(record[columns.split]).strip().lower())
        if split is None:
            value = str(record[columns.split])[:40]
            return f"unknown split {value!r}: it is none of {', '.join(SPLITS)}"
    return TableRow(texts[0] if len(texts) == 1 else (texts[0], texts[1]), target, split, line)


def _json_records(
    source: TextFile, columns: Columns, bad: BadRows
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            record = json_object(line)
        except ValueError as error:
            bad.report(str(error), source, number)
            continue
        if problem := _column_problem(columns, list(record)):
            bad.report(problem, source, number)
            continue
        yield number, record


def _table_records(
    source: TextFile, columns: Columns, bad: BadRows
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows under their header; a record may span lines, and is named by its first."""
    is_tsv = source.name.endswith(".tsv")
    lines = (line for _, line in source.lines())
    reader = csv.reader(
        lines,
        delimiter="\t" if is_tsv else ",",
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
            bad.report(_csv_problem(error), source, first_line)
            continue
        if not fields:
            continue
        if header is None:
            header = [name.strip() for name in fields]
            if problem := _column_problem(columns, header):
                raise DataError(
                    problem,
                    where=str(source),
                    line=first_line,
                    hint="Name the columns by --text-column, --label-column and so on",
                )
        elif len(fields) != len(header):
            bad.report(f"{len(fields)} columns, not {len(header)}", source, first_line)
        else:
            yield first_line, dict(zip(header, fields, strict=True))


def _csv_problem(error: csv.Error) -> str:
    if "field limit" in str(error):
        return f"a field of more than {csv.field_size_limit():,} characters"
    return f"unbalanced quotes or a stray line end: {error}"


def _column_problem(columns: Columns, present: list[str]) -> str | None:
    for name in columns.names():
        if name not in present:
            return f"no column {name!r}. {nearest(name, present)}"
        if present.count(name) > 1:
            return f"more than one column {name!r}"
    return None
