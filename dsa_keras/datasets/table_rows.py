"""The labelled rows of a table, each one checked.

`dsa_keras.data.table_files` says how the files are read. Columns (jsonl: keys) are named by option;
other columns are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsa_keras.data.bad_rows import BadRows, text_problem
from dsa_keras.data.table_files import Wanted, read_records, told_encoding
from dsa_keras.data.text_files import TextFile
from dsa_keras.datasets.fractions import SPLITS
from dsa_keras.inputs import Text
from dsa_keras.objectives import Objective

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

    def report(problem: str, line: int) -> None:
        bad.report(problem, source, line)

    rows = []
    for line, record in read_records(source, Wanted(columns.names()), report):
        row = _checked_row(record, columns, kind, line)
        if isinstance(row, str):
            report(row, line)
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
            return told_encoding(problem)
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
