"""What the commands read: arguments, lines of a file or of standard input, or a table.

A table is a file of a suffix that says so; its other columns go along with the texts, so that a
command can write them beside its answers. Some thousand texts are held in memory at a time.
"""

from __future__ import annotations

import abc
import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from dsa_keras.commands.streams import CHUNK, in_chunks, read_lines, source_name
from dsa_keras.data.bad_rows import encoding_problem
from dsa_keras.data.parquet_files import is_parquet, read_batches
from dsa_keras.data.table_files import (
    FORMATS,
    Wanted,
    check_parquet,
    is_table,
    read_records,
    table_file,
    told_encoding,
)
from dsa_keras.data.text_files import UTF_8, TextFile, checked_encoding
from dsa_keras.datasets.option import ENCODING
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import Inputs, Text
from dsa_keras.runs import RunConfig

_OPTIONS = {"text_column": "--text-column", "pair_column": "--pair-column"}


@dataclass(frozen=True)
class Chunk:
    """Some texts, in order.

    Attributes:
        texts: what the model takes.
        lines: where each of them stands in its file.
        where: what the file is called.
        rows: those of the table that they come from; None if they come from no table.
        batch: the same as an Arrow record batch, if it is a Parquet file.
    """

    texts: list[Text]
    lines: list[int]
    where: str
    rows: list[dict[str, Any]] | None = None
    batch: Any = None

    @property
    def from_table(self) -> bool:
        """Whether the texts come from a table."""
        return self.rows is not None or self.batch is not None

    def records(self, inputs: Inputs) -> list[dict[str, Any]]:
        """What goes with the texts: the rows of their table, or the sentences by their names."""
        if self.batch is not None:
            return list(self.batch.to_pylist())
        if self.rows is not None:
            return self.rows
        sentences = (inputs.sentences(text) for text in self.texts)
        return [dict(zip(inputs.signature, one, strict=True)) for one in sentences]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def sentences(self) -> list[str]:
        """The texts of inputs that take one sentence."""
        return cast(list[str], self.texts)


class Texts(abc.ABC):
    """Where texts come from."""

    typed = False
    """Whether a person types them at this moment."""

    def greet(self) -> None:
        """Tells a person at a terminal what to do."""
        if self.typed:
            print("type one sentence a line; Ctrl-D ends", file=sys.stderr)

    @abc.abstractmethod
    def check(self) -> None:
        """Tells of what cannot be read before a model is loaded, which takes seconds.

        Raises:
            DataError: as `chunks`.
        """

    @abc.abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """The texts, some thousand at a time.

        Raises:
            DataError: if they cannot be read.
        """


def add_file_options(parser: argparse.ArgumentParser, *, pairs: bool = False, **file: Any) -> None:
    """Adds `--file`, and the options that say how it is read.

    Args:
        parser: of the command.
        pairs: whether the command takes pairs.
        **file: arguments of `add_argument` for `--file`.
    """
    parser.add_argument(
        "--file",
        metavar="FILE",
        help=f"a table ({', '.join(FORMATS)}; as text also .gz or .zip), or sentences, one a line; "
        "- standard input",
        **file,
    )
    add_column_options(parser, pairs=pairs)


def add_column_options(parser: argparse.ArgumentParser, *, pairs: bool) -> None:
    """Adds `--text-column`, `--pair-column` to a command that takes pairs, and `--encoding`."""
    parser.add_argument(
        "--text-column",
        metavar="NAME",
        help="the sentence in a table (default: the column it was trained with, or text)",
    )
    if pairs:
        parser.add_argument("--pair-column", metavar="NAME", help="the second sentence, for pairs")
    parser.add_argument(ENCODING.flag, default=UTF_8, **ENCODING.argument())


def texts_of(
    args: argparse.Namespace,
    config: RunConfig,
    inputs: Inputs,
    sentences: Sequence[str] = (),
    *,
    keeps: bool = True,
) -> Texts:
    """The texts that the arguments of a command name.

    Args:
        args: with the options of `add_file_options`.
        config: of the run, which says the columns that it was trained with.
        inputs: what a text is.
        sentences: those among the arguments.
        keeps: whether the other columns of a table are written out.

    Raises:
        ConfigError: if the options do not go together.
        DataError: if an archive cannot be read.
    """
    given = _given(args)
    if sentences and args.file:
        raise ConfigError("both sentences and --file are given", hint="Give one of them")
    path = args.file or "-"
    if not sentences and path != "-" and is_table(Path(path)):
        columns = text_columns(args, config, inputs)
        kind = _ParquetTexts if is_parquet(Path(path)) else _TableTexts
        return kind(table_file(Path(path), args.encoding), inputs, columns, keeps=keeps)
    if given:
        raise ConfigError(
            f"{_OPTIONS[next(iter(given))]} names a column of a table",
            where=source_name(path) if not sentences else None,
            hint=f"Give a --file that ends in {', '.join(FORMATS)}, or leave the option out",
        )
    if sentences:
        return _Arguments(inputs, sentences)
    return _Lines(path, inputs, checked_encoding(args.encoding), named=bool(args.file))


def _given(args: argparse.Namespace) -> dict[str, str]:
    """The columns that were named."""
    options = {name: getattr(args, name, None) for name in _OPTIONS}
    return {name: value for name, value in options.items() if value is not None}


def text_columns(args: argparse.Namespace, config: RunConfig, inputs: Inputs) -> list[str]:
    """The columns of the sentences: those that are given, or those of the training.

    Args:
        args: with the options of `add_column_options`.
        config: of the run.
        inputs: what a text is.

    Raises:
        ConfigError: if there is one for a second sentence that the model does not take.
    """
    given = _given(args)
    names = dict(zip(_OPTIONS, inputs.signature, strict=False))
    if surplus := given.keys() - names.keys():
        raise ConfigError(
            f"{_OPTIONS[surplus.pop()]} is for models of pairs",
            hint="Leave it out: this model takes one sentence",
        )
    of_training = config.origin.options if config.origin else {}
    if of_training.get("pair_column"):
        of_training = {"text_column": "text", **of_training}
    return [str(given.get(name) or of_training.get(name) or names[name]) for name in names]


class _Arguments(Texts):
    """Sentences of the command line."""

    def __init__(self, inputs: Inputs, sentences: Sequence[str]) -> None:
        self.inputs, self.sentences = inputs, sentences

    def check(self) -> None:
        """Refuses half a pair."""
        self.inputs.from_arguments(self.sentences)

    def chunks(self) -> Iterator[Chunk]:
        """All in one."""
        texts = self.inputs.from_arguments(self.sentences)
        yield Chunk(texts, list(range(1, len(texts) + 1)), "arguments")


class _Lines(Texts):
    """A text a line."""

    def __init__(self, path: str, inputs: Inputs, encoding: str, *, named: bool) -> None:
        self.path, self.inputs, self.encoding = path, inputs, encoding
        self.typed = not named and sys.stdin.isatty()

    def check(self) -> None:
        """Reads a line, unless that would take it from standard input."""
        if self.path != "-":
            next(read_lines(self.path, self.encoding))

    def chunks(self) -> Iterator[Chunk]:
        """As many lines at a time as are there, but each at once if they are typed."""
        for rows in in_chunks(self._texts(), 1 if self.typed else CHUNK):
            texts, lines = zip(*rows, strict=True)
            yield Chunk(list(texts), list(lines), source_name(self.path))

    def _texts(self) -> Iterator[tuple[Text, int]]:
        for number, line in enumerate(read_lines(self.path, self.encoding), start=1):
            yield self.inputs.from_line(line, number, source_name(self.path)), number


class _TableTexts(Texts):
    """A text a row, with its other columns."""

    def __init__(
        self, source: TextFile, inputs: Inputs, columns: list[str], *, keeps: bool
    ) -> None:
        self.source, self.inputs, self.columns = source, inputs, columns
        options = " and ".join(list(_OPTIONS.values())[: len(columns)])
        self.wanted = Wanted(columns, options, unique=keeps)

    def check(self) -> None:
        """Reads a row."""
        next(self._rows())

    def chunks(self) -> Iterator[Chunk]:
        """Some thousand rows at a time."""
        for rows in in_chunks(self._rows()):
            texts, lines, records = zip(*rows, strict=True)
            yield Chunk(list(texts), list(lines), str(self.source), list(records))

    def _rows(self) -> Iterator[tuple[Text, int, dict[str, Any]]]:
        line = 0
        for line, record in read_records(self.source, self.wanted, self._refuse):
            text = self._text(record, line)
            for value in record.values():
                if isinstance(value, str) and (problem := encoding_problem(value)):
                    self._refuse(told_encoding(problem), line)
            yield text, line, record
        if line == 0:
            raise DataError("there is no row to read", where=str(self.source))

    def _text(self, record: Mapping[str, Any], line: int) -> Text:
        sentences = [record[name] for name in self.columns]
        for sentence in sentences:
            if not isinstance(sentence, str):
                self._refuse(f"a sentence that is not a string: {str(sentence)[:40]!r}", line)
        return self.inputs.text(sentences)

    def _refuse(self, problem: str, line: int) -> NoReturn:
        raise DataError(problem, where=str(self.source), line=line, hint="Mend the row")


class _ParquetTexts(_TableTexts):
    """A text a row of a Parquet file, whose other columns keep their types."""

    def chunks(self) -> Iterator[Chunk]:
        """Some thousand rows at a time, those of one row group in memory."""
        path, done = self.source.path, 0
        check_parquet(path, self.wanted)
        read = None if self.wanted.unique else self.columns
        for batch in read_batches(path, CHUNK, read):
            if not len(batch):
                continue
            lines = list(range(done + 1, done + len(batch) + 1))
            records = batch.select(self.columns).to_pylist()
            texts = [self._text(one, line) for one, line in zip(records, lines, strict=True)]
            yield Chunk(texts, lines, str(self.source), batch=batch)
            done = lines[-1]
