"""How answers are written: text, JSON lines, csv or Parquet, beside the columns of a table."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dsa_keras.commands.streams import text_output
from dsa_keras.commands.texts import Chunk
from dsa_keras.data.parquet_files import Batches, ParquetOutput, require_pyarrow
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.files import written_aside
from dsa_keras.objectives.reading import Reading

if TYPE_CHECKING:
    from dsa_keras.inputs import Inputs
    from dsa_keras.objectives import Answer, Objective


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
        records = chunk.records(self.inputs)
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
            if chunk.from_table:
                sentences = tuple(map(one_line, sentences))
            self.file.write("\t".join([*answer.cells(), *sentences]) + "\n")
        self.file.flush()


class JsonWriter(TextWriter):
    """An object per line."""

    def __init__(self, file: IO[str], inputs: Inputs, objective: Objective) -> None:
        super().__init__(file, inputs, objective)
        self._merged = Merged(inputs)

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        for record in self._merged(chunk, [answer.to_dict() for answer in answers]):
            self.file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        self.file.flush()


class CsvWriter(TextWriter):
    """A header, then a row per text with a column for each number of its answer."""

    header: list[str] | None = None

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        records = chunk.records(self.inputs)
        writer = csv.writer(self.file, lineterminator="\n")
        if self.header is None:
            self.header = list(records[0])
            new = free_names(_columns(self.objective), self.header).values()
            writer.writerow([*self.header, *new])
        for record, line, answer in zip(records, chunk.lines, answers, strict=True):
            if unknown := [name for name in record if name not in self.header]:
                raise DataError(
                    f"the key {unknown[0]!r} is not one of the first row, so it has no column",
                    where=chunk.where,
                    line=line,
                    hint="Choose --format jsonl",
                )
            cells = [record.get(name) for name in self.header]
            writer.writerow([*map(_cell, cells), *_row(answer)])
        self.file.flush()


def _columns(objective: Objective) -> list[str]:
    """The columns of an answer, and of how much of the text was read."""
    return [*objective.columns(), *Reading.columns()]


def _values(answer: Answer) -> list[Any]:
    """The values of these columns."""
    read = answer.reading.to_dict() if answer.reading else dict.fromkeys(Reading.columns())
    return [*answer.row(), *read.values()]


def _row(answer: Answer) -> list[Any]:
    """The same as a csv holds them."""
    return [_cell(value) if isinstance(value, bool) else value for value in _values(answer)]


def _cell(value: Any) -> Any:
    """A value as a csv holds it."""
    is_json = isinstance(value, bool | int | float | list | dict)
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else value


class ParquetRows:
    """Chunks with new columns beside their own, as a Parquet file.

    Args:
        file: where to write.
        inputs: what names the sentences that come from no table.
    """

    def __init__(self, file: IO[bytes], inputs: Inputs) -> None:
        self.output, self.inputs = ParquetOutput(file), inputs
        self._batches = Batches()
        self._names: dict[str, str] | None = None

    def write(self, chunk: Chunk, new: Mapping[str, Any]) -> None:
        """Writes a chunk with Arrow arrays by name.

        Raises:
            DataError: if its rows do not fit into the columns of the first.
        """
        batch = chunk.batch
        if batch is None:
            try:
                batch = self._batches(chunk.records(self.inputs))
            except ValueError as error:
                raise DataError(
                    str(error), where=chunk.where, hint="Choose an output that ends in .jsonl"
                ) from None
        if self._names is None:
            self._names = free_names(new, batch.schema.names)
        self.output.write(batch, {self._names[name]: column for name, column in new.items()})


class _ParquetWriter:
    """Answers in columns of Parquet."""

    def __init__(self, file: IO[bytes], inputs: Inputs, objective: Objective) -> None:
        self.rows, self.objective = ParquetRows(file, inputs), objective

    def write(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Writes a chunk."""
        import pyarrow

        columns = zip(*(_values(answer) for answer in answers), strict=True)
        named = zip(_columns(self.objective), columns, strict=True)
        self.rows.write(chunk, {name: pyarrow.array(values) for name, values in named})


_TEXT: dict[str, type[TextWriter]] = {"text": TextWriter, "jsonl": JsonWriter, "csv": CsvWriter}

FORMATS = (*_TEXT, "parquet")
"""How answers can be written."""


def chosen_format(given: str | None, output: Path | None) -> str:
    """The format that is asked for, or that the name of the output tells.

    Raises:
        ConfigError: if they do not agree, or Parquet has no file to go to.
    """
    told = "" if output is None else output.suffix.lower().removeprefix(".")
    chosen = given or (told if told in FORMATS else "text")
    if (chosen == "parquet") != (told == "parquet"):
        raise ConfigError(
            f"--format {chosen} and "
            + ("no --output" if output is None else f"an --output that ends in {output.suffix!r}"),
            hint="Parquet goes to a file: give an --output that ends in .parquet"
            if chosen == "parquet"
            else "Leave --format out, or name another file",
        )
    if chosen == "parquet":
        require_pyarrow()
    return chosen


@contextlib.contextmanager
def answers_output(
    form: str, output: Path | None, inputs: Inputs, objective: Objective
) -> Iterator[TextWriter | _ParquetWriter]:
    """What writes answers, to standard output or to a file that appears when it is complete."""
    if form != "parquet" or output is None:
        with text_output(output) as text:
            yield _TEXT[form](text, inputs, objective)
        return
    with written_aside(output) as aside, aside.open("wb") as file:
        writer = _ParquetWriter(file, inputs, objective)
        try:
            yield writer
        finally:
            writer.rows.output.close()
