"""How answers are written: as text, as JSON lines or as a csv, beside the columns of a table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from dsa_keras.commands.texts import Chunk
from dsa_keras.errors import DataError

if TYPE_CHECKING:
    from dsa_keras.inputs import Inputs
    from dsa_keras.objectives import Answer, Objective


def records_of(chunk: Chunk, inputs: Inputs) -> list[dict[str, Any]]:
    """What goes with the texts: the rows of their table, or the sentences by their names."""
    if chunk.records is not None:
        return chunk.records
    sentences = (inputs.sentences(text) for text in chunk.texts)
    return [dict(zip(inputs.signature, one, strict=True)) for one in sentences]


def one_line(text: str) -> str:
    """A text for a line with tabs in it: its own tabs and line ends are spaces."""
    return " ".join(text.splitlines()).replace("\t", " ") if text else text


def free_names(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """New names for columns whose names a table has already: `predicted_label` for `label`.

    Args:
        names: of the new columns.
        taken: those of the table.
    """
    others, found = set(taken), {}
    for name in names:
        new = name
        while new in others:
            new = f"predicted_{new}"
        found[name] = new
    return found


class Merged:
    """The records of a table with new fields beside them, under the same names in each row.

    Args:
        inputs: what names the sentences that come from no table.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._names: dict[str, str] | None = None

    def __call__(
        self, chunk: Chunk, fields: Iterable[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """The records of a chunk, each with its new fields.

        Raises:
            DataError: if a record has one of the new names.
        """
        records = records_of(chunk, self.inputs)
        for record, line, new in zip(records, chunk.lines, fields, strict=True):
            if self._names is None:
                self._names = free_names(new, record)
            named = {self._names[name]: value for name, value in new.items()}
            if both := sorted(named.keys() & record.keys()):
                raise DataError(
                    f"the key {both[0]!r}, which the first row has not, is that of the result",
                    where=chunk.where,
                    line=line,
                    hint="Give it to all rows, or to none",
                )
            yield {**record, **named}


class TextWriter:
    """The answer in a few columns and the text, separated by tabs."""

    def __init__(self, file: IO[str], inputs: Inputs, objective: Objective) -> None:
        self.file, self.inputs, self.objective = file, inputs, objective

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        for text, answer in zip(chunk.texts, answers, strict=True):
            sentences = self.inputs.sentences(text)
            if chunk.records is not None:
                sentences = tuple(map(one_line, sentences))
            self.file.write("\t".join([*answer.cells(), *sentences]) + "\n")


class JsonWriter(TextWriter):
    """An object per line."""

    def __init__(self, file: IO[str], inputs: Inputs, objective: Objective) -> None:
        super().__init__(file, inputs, objective)
        self._merged = Merged(inputs)

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        for record in self._merged(chunk, [answer.fields() for answer in answers]):
            self.file.write(json.dumps(record, ensure_ascii=False) + "\n")


class CsvWriter(TextWriter):
    """A header, then a row per text with a column for each number of its answer."""

    header: list[str] | None = None

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        records = records_of(chunk, self.inputs)
        writer = csv.writer(self.file, lineterminator="\n")
        if self.header is None:
            self.header = list(records[0])
            new = free_names(self.objective.columns(), self.header).values()
            writer.writerow([*self.header, *new])
        for record, line, answer in zip(records, chunk.lines, answers, strict=True):
            if unknown := [name for name in record if name not in self.header]:
                raise DataError(
                    f"the key {unknown[0]!r} is not one of the first row, so it has no column",
                    where=chunk.where,
                    line=line,
                    hint="Choose --format jsonl",
                )
            writer.writerow([*(_cell(record.get(name)) for name in self.header), *answer.row()])


def _cell(value: Any) -> Any:
    """A value as a csv holds it."""
    return (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


WRITERS = {"text": TextWriter, "jsonl": JsonWriter, "csv": CsvWriter}
"""By the name of the format."""
