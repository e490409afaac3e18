"""`file`: a person's own csv, tsv or jsonl, one sentence or two per row, plain, `.gz` or `.zip`.

`dsa_keras.data.table_files` says how the files are read.

What a label is, the objective says (`--target`): a class or a number. Class labels may be of any
plain type. Their names in sorted order (numbers by value) are the classes, taken from the training
split: a label that only development or test rows have is a bad row, since no model could learn it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.data.bad_rows import BadRows, check_not_empty
from dsa_keras.data.table_files import table_file
from dsa_keras.data.text_files import UTF_8, TextFile
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.fractions import (
    DEFAULT_FRACTIONS,
    SPLITS,
    checked_fractions,
    stratified,
)
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.datasets.option import DATA_SEED, ENCODING, ON_BAD_ROWS, Option
from dsa_keras.datasets.table_rows import Columns, TableRow, read_rows
from dsa_keras.encoders import Encoder
from dsa_keras.errors import ConfigError, DataError, nearest
from dsa_keras.inputs import PAIR, SENTENCE, Text
from dsa_keras.objectives import DEFAULT_OBJECTIVE, OBJECTIVES, Objective

DEFAULT_TARGET = OBJECTIVES.get(DEFAULT_OBJECTIVE).target_kind
"""What labels are where nothing else is said."""


def objective_for(target: str) -> type[Objective]:
    """The objective for a kind of target, such as `number`, or of a name.

    An objective that takes the kind of its targets from another is found by its name only.

    Raises:
        ConfigError: if there is none.
    """
    kinds = {one.target_kind: one for one in OBJECTIVES if vars(one).get("target_kind")}
    found = kinds | {one.name: one for one in OBJECTIVES}
    if target not in found:
        raise ConfigError(f"unknown target {target!r}", hint=nearest(target, found))
    return found[target]


def load_file(
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
    classes: Sequence[str] | None = None,
    target: str = DEFAULT_TARGET,
    seed: int = 0,
    on_bad_rows: str = "error",
    encoding: str = UTF_8,
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
        classes: the classes in an order of your own. A row of any other class is a bad row, and the
            training split must have each of them.
        target: what the labels are, `class` or `number`, or the name of an objective.
        seed: of that draw; the same file, fractions and seed give the same splits.
        on_bad_rows: "error" stops at the first bad row, "skip" counts them; those of a file for
            all splits are counted under "train".
        encoding: of files of text, such as cp1252.
    """
    columns = Columns(text_column, pair_column, label_column, split_column)
    kind = objective_for(target)
    named = None if classes is None else _named(kind, classes)
    files = {"train": train, "dev": dev, "test": test}
    given = {split: file for split, file in files.items() if file is not None}
    if (path is None) == (not given):
        raise ConfigError(
            "it does not go with files of splits" if given else "no file of data is given",
            where="--file",
            hint="Give --file, or --train-file with --dev-file and --test-file",
        )
    if given and train is None:
        raise ConfigError(
            "the training file is missing", where="--train-file", hint="The classes come from it"
        )
    if fractions is not None and (given or split_column is not None):
        raise ConfigError(
            "they are for one file without a split column",
            where="--fractions",
            hint="Leave out --fractions, or --split-column, or name one file by --file",
        )
    if given and split_column is not None:
        raise ConfigError(
            "it is for one file, given by --file",
            where="--split-column",
            hint="Leave out --split-column, or name one file by --file",
        )
    shares = checked_fractions(DEFAULT_FRACTIONS if fractions is None else fractions)

    folder = Path("" if data_dir is None else data_dir).expanduser()
    bad = {split: BadRows(on_bad_rows) for split in SPLITS}
    if path is None:
        sources = {
            split: table_file(folder / Path(file).expanduser(), encoding)
            for split, file in given.items()
        }
        rows = {
            split: _known(read_rows(source, columns, kind, bad[split]), named, source, bad[split])
            for split, source in sources.items()
        }
    else:
        source = table_file(folder / Path(path).expanduser(), encoding)
        sources = dict.fromkeys(SPLITS, source)
        everything = read_rows(source, columns, kind, bad["train"])
        everything = _known(everything, named, source, bad["train"])
        if split_column is None:
            strata = [str(kind.stratum(row.target)) for row in everything]
            chosen = stratified(strata, shares, seed, str(source))
            drawn = {name: [everything[index] for index in chosen[name]] for name in SPLITS}
        else:
            drawn = {name: [row for row in everything if row.split == name] for name in SPLITS}
        rows = {split: part for split, part in drawn.items() if part or split == "train"}
    return _dataset(rows, kind, named, sources, bad, label_column)


def _named(kind: type[Objective], classes: Sequence[str]) -> Objective:
    """The objective of the classes that the user named."""
    try:
        return kind.of_names(classes)
    except ValueError as error:
        raise ConfigError(
            str(error), where="--classes", hint="Name each class once: --classes bad,good"
        ) from None


def _known(
    rows: list[TableRow], named: Objective | None, source: TextFile, bad: BadRows
) -> list[TableRow]:
    """The rows whose class the user named, if classes were named; others are bad rows."""
    if named is None:
        return rows
    known = []
    for row in rows:
        try:
            named.encoded(row.target)
        except ValueError as error:
            bad.report(f"{error} is none of --classes", source, row.line)
        else:
            known.append(row)
    return known


def _dataset(
    rows: dict[str, list[TableRow]],
    kind: type[Objective],
    named: Objective | None,
    sources: dict[str, TextFile],
    bad: dict[str, BadRows],
    label_column: str,
) -> Dataset:
    check_not_empty(len(rows["train"]), sources["train"], bad["train"])
    try:
        objective = kind.of_targets([row.target for row in rows["train"]])
    except ValueError as error:
        raise DataError(
            f"{error} in the column {label_column!r} of the training split, so there is nothing to "
            "learn",
            where=str(sources["train"]),
            hint="Name another column by --label-column, or check --target",
        ) from None
    if named is not None:
        found = {objective.told(objective.encoded(row.target)) for row in rows["train"]}
        wanted = map(named.told, range(named.num_outputs))
        if missing := [name for name in wanted if name not in found]:
            raise DataError(
                f"the training split has no example of {missing[0]!r}, which --classes names",
                where=str(sources["train"]),
                hint="Name the classes that the file has",
            )
        objective = named
    splits = {
        split: _split(members, objective, sources[split], bad[split], f"is in the {split} split")
        for split, members in rows.items()
    }
    skipped = {split: bad[split].count for split in splits}
    return Dataset("file", splits, objective, skipped)


def load_labelled(
    path: str | os.PathLike[str],
    columns: Columns,
    objective: Objective,
    on_bad_rows: str = "error",
    encoding: str = UTF_8,
) -> tuple[Split, int]:
    """Loads a file to score a model by, which has been trained already.

    Args:
        path: the file.
        columns: what to read; a split column is of no meaning here.
        objective: that of the model. A label that it does not know makes a bad row.
        on_bad_rows: "error" stops at the first bad row, "skip" counts them.
        encoding: of a file of text.

    Returns:
        The examples, and how many bad rows were left out.

    Raises:
        DataError: if the file cannot be read, or has no usable row.
    """
    source, bad = table_file(Path(path).expanduser(), encoding), BadRows(on_bad_rows)
    rows = read_rows(source, columns, type(objective), bad)
    return _split(rows, objective, source, bad, "is in the file"), bad.count


def _split(
    rows: Sequence[TableRow], objective: Objective, source: TextFile, bad: BadRows, there: str
) -> Split:
    """The examples of rows; `there` says where a label is that the objective does not know."""
    texts: list[Text] = []
    targets: list[int | float] = []
    for row in rows:
        try:
            targets.append(objective.encoded(row.target))
        except ValueError as error:
            bad.report(f"{error} {there}, never in the training split", source, row.line)
            continue
        texts.append(row.text)
    check_not_empty(len(texts), source, bad)
    return Split(texts, np.array(targets, objective.dtype))


def _recipe(encoder: Encoder, options: Mapping[str, Any]) -> Recipe:
    objective = objective_for(options.get("target", DEFAULT_TARGET))()
    inputs = SENTENCE if options.get("pair_column") is None else PAIR
    return recipes.own_data(encoder, objective, inputs)


register_dataset(
    Entry(
        "file",
        "your own .csv, .tsv or .jsonl (also .gz, .zip)",
        load_file,
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
                "what a label is: class, number, or the name of an objective (default: "
                f"{DEFAULT_TARGET})",
                metavar="KIND",
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
            Option(
                "--classes",
                "classes",
                "the classes in an order of your own, such as bad,good (default: sorted)",
                metavar="A,B,...",
                separator=",",
            ),
            ENCODING,
            DATA_SEED,
            ON_BAD_ROWS,
        ),
        without_vectors=recipes.own_words,
        title="TASK file: your own .csv, .tsv or .jsonl (also .gz, .zip)",
    )
)
