"""`file`: a person's own csv, tsv or jsonl, one sentence or two per row, plain, `.gz` or `.zip`.

The format comes from the suffix. A csv or tsv starts with a header; columns (jsonl: keys) are named
by option. A csv is read strictly, so an unbalanced quote is an error; a tsv has no quoting: a quote
is a character like any other. Blank lines are ignored, other columns are not looked at.

What a label is, the objective says (`--target`): a class or a number. Class labels may be of any
plain type. Their names in sorted order (numbers by value) are the classes, taken from the training
split: a label that only development or test rows have is a bad row, since no model could learn it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.data.archives import list_members
from dsa_keras.data.text_files import (
    BadRows,
    TextFile,
    check_not_empty,
    json_object,
    text_problem,
)
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.entry import ON_BAD_ROWS, Entry, Option
from dsa_keras.datasets.fractions import (
    DEFAULT_FRACTIONS,
    SPLITS,
    checked_fractions,
    stratified,
)
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.encoders import Encoder
from dsa_keras.errors import ConfigError, DataError, nearest
from dsa_keras.inputs import PAIR, SENTENCE, Text
from dsa_keras.objectives import DEFAULT_OBJECTIVE, OBJECTIVES, Objective

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
        label: the label.
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


def objective_for(target: str) -> type[Objective]:
    """The objective whose targets are of a kind.

    Raises:
        ConfigError: if there is none.
    """
    kinds = {one.target_kind: one for one in OBJECTIVES if one.target_kind}
    if target not in kinds:
        raise ConfigError(f"unknown target {target!r}", hint=nearest(target, kinds))
    return kinds[target]


_DEFAULT_TARGET = OBJECTIVES.get(DEFAULT_OBJECTIVE).target_kind


def load_tables(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    train: str | os.PathLike[str] | None = None,
    dev: str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | None = None,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str = "label",
    split_column: str | None = None,
    fractions: Sequence[float] | None = None,
    target: str = _DEFAULT_TARGET,
    seed: int = 0,
    on_bad_rows: str = "error",
) -> Dataset:
    """Loads one file, split by a column or by fractions, or one file per split.

    Args:
        data_dir: the folder that relative paths start from; None for the current one.
        path: the one file with all the data.
        train: the file of the training split, instead of `path`.
        dev: the file of the development split.
        test: the file of the test split.
        text_column: the column of the sentence, or of the first of two.
        pair_column: the column of the second sentence, for pairs.
        label_column: the column of the label, or of the number.
        split_column: the column that says train, dev (or val, valid, validation) or test.
        fractions: shares of train, dev and test, drawn per class; 0.8, 0.1, 0.1 unless given.
        target: what the labels are, `class` or `number`.
        seed: of that draw; the same file, fractions and seed give the same splits.
        on_bad_rows: "error" stops at the first bad row, "skip" counts them; those of a file for
            all splits are counted under "train".
    """
    columns = Columns(text_column, pair_column, label_column, split_column)
    kind = objective_for(target)
    files = {"train": train, "dev": dev, "test": test}
    given = {split: file for split, file in files.items() if file is not None}
    if (path is None) == (not given):
        raise ConfigError(
            "name the data by path, or by train (and dev, test)",
            where="path",
            hint="Give one of the two.",
        )
    if given and train is None:
        raise ConfigError("no training file", where="train", hint="The classes come from it.")
    if fractions is not None and (given or split_column is not None):
        raise ConfigError(
            "fractions are for one file without a split column",
            where="fractions",
            hint="Leave out the fractions, or the split column or files.",
        )
    if given and split_column is not None:
        raise ConfigError(
            "a split column is for one file, given by path",
            where="split_column",
            hint="Leave out the split column, or name one file by path.",
        )
    shares = checked_fractions(DEFAULT_FRACTIONS if fractions is None else fractions)

    folder = Path("" if data_dir is None else data_dir).expanduser()
    bad = {split: BadRows(on_bad_rows) for split in SPLITS}
    rows: dict[str, list[TableRow]] = {}
    if path is None:
        sources = {
            split: _source(folder / Path(file).expanduser()) for split, file in given.items()
        }
        for split, source in sources.items():
            rows[split] = _read(source, columns, kind, bad[split])
    else:
        source = _source(folder / Path(path).expanduser())
        sources = dict.fromkeys(SPLITS, source)
        everything = _read(source, columns, kind, bad["train"])
        if split_column is None:
            strata = [str(kind.stratum(row.target)) for row in everything]
            chosen = stratified(strata, shares, seed, str(source))
            drawn = {name: [everything[index] for index in chosen[name]] for name in SPLITS}
        else:
            drawn = {name: [row for row in everything if row.split == name] for name in SPLITS}
        rows = {split: part for split, part in drawn.items() if part or split == "train"}
    return _dataset(rows, kind, sources, bad)


def _dataset(
    rows: dict[str, list[TableRow]],
    kind: type[Objective],
    sources: dict[str, TextFile],
    bad: dict[str, BadRows],
) -> Dataset:
    check_not_empty(len(rows["train"]), sources["train"], bad["train"])
    try:
        objective = kind.of_targets([row.target for row in rows["train"]])
    except ValueError as error:
        raise DataError(
            f"{error} in the training split, so there is nothing to learn",
            where=str(sources["train"]),
            hint="Check --label-column and --target",
        ) from None
    splits: dict[str, Split] = {}
    for split, members in rows.items():
        texts: list[Text] = []
        targets: list[int | float] = []
        for row in members:
            try:
                targets.append(objective.encoded(row.target))
            except ValueError as error:
                problem = f"{error} is in the {split} split, never in the training split"
                bad[split].report(problem, sources[split], row.line)
                continue
            texts.append(row.text)
        check_not_empty(len(texts), sources[split], bad[split])
        splits[split] = Split(texts, np.array(targets, objective.dtype))
    skipped = {split: bad[split].count for split in splits}
    return Dataset("file", splits, objective, skipped)


def _source(path: Path) -> TextFile:
    """The file to read; for a zip archive, its one member with a known suffix."""
    if path.suffix != ".zip":
        source = TextFile(path)
        if not source.name.endswith(FORMATS):
            raise DataError(
                "unknown format",
                where=path,
                hint=f"Name a file that ends in {', '.join(FORMATS)}, also with .gz after it.",
            )
        return source
    members = [name for name in list_members(path) if name.endswith(FORMATS)]
    if len(members) != 1:
        raise DataError(
            f"{len(members)} files of a known format in the archive",
            where=path,
            hint=f"It must hold one file that ends in {', '.join(FORMATS)}.",
        )
    return TextFile(path, members[0])


def _read(
    source: TextFile, columns: Columns, kind: type[Objective], bad: BadRows
) -> list[TableRow]:
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
                    hint='Write a quote inside a quoted field twice ("").',
                ) from error
            bad.report(_csv_problem(error), source, first_line)
            continue
        if not fields:
            continue
        if header is None:
            header = [name.strip() for name in fields]
            if problem := _column_problem(columns, header):
                raise DataError(
                    problem, where=str(source), line=first_line, hint="Name the columns by option."
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


def _recipe(encoder: Encoder, options: Mapping[str, Any]) -> Recipe:
    objective = objective_for(options.get("target", _DEFAULT_TARGET))()
    inputs = SENTENCE if options.get("pair_column") is None else PAIR
    return recipes.own_data(encoder, objective, inputs)


register_dataset(
    Entry(
        "file",
        "your own .csv, .tsv or .jsonl (also .gz, .zip)",
        load_tables,
        _recipe,
        (
            Option("--file", "path", "one file with all the data", metavar="FILE"),
            *(
                Option(f"--{split}-file", split, f"file of the {split} split", metavar="FILE")
                for split in SPLITS
            ),
            Option("--text-column", "text_column", "the sentence (default: text)", metavar="NAME"),
            Option(
                "--pair-column", "pair_column", "the second sentence, for pairs", metavar="NAME"
            ),
            Option("--label-column", "label_column", "the label (default: label)", metavar="NAME"),
            Option(
                "--target",
                "target",
                f"what a label is (default: {_DEFAULT_TARGET})",
                choices=tuple(sorted(one.target_kind for one in OBJECTIVES if one.target_kind)),
            ),
            Option(
                "--split-column",
                "split_column",
                "says train, dev or test for each row",
                metavar="NAME",
            ),
            Option(
                "--fractions",
                "fractions",
                "shares of one file (default: 0.8 0.1 0.1)",
                kind=float,
                metavar=("TRAIN", "DEV", "TEST"),
                count=3,
            ),
            ON_BAD_ROWS,
        ),
        title="TASK file: your own .csv, .tsv or .jsonl (also .gz, .zip)",
    )
)
