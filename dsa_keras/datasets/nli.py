"""What SNLI and MultiNLI share: their files, jsonl or tab-separated text, as the official ones are.

Rows whose gold label is "-" (the annotators did not agree) are dropped in every split, as everybody
does; that is part of the data sets, so they are logged and do not count as bad rows. Blank lines
are ignored.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.data.bad_rows import (
    BadRows,
    check_not_empty,
    encoding_problem,
    json_object,
    text_problem,
)
from dsa_keras.data.text_files import TextFile
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.layout import Layout
from dsa_keras.encoders import Encoder
from dsa_keras.errors import DataError
from dsa_keras.objectives.classification import Classification

CLASS_NAMES = ("entailment", "neutral", "contradiction")
COLUMNS = ("gold_label", "sentence1", "sentence2")

_log = logging.getLogger(__name__)
_Line = tuple[int, object, object, object]


def load_nli(
    name: str, layout: Layout, data_dir: str | os.PathLike[str] | None, on_bad_rows: str
) -> Dataset:
    """Loads whichever splits of a layout are there, as (premise, hypothesis) pairs."""
    splits: dict[str, Split] = {}
    skipped: dict[str, int] = {}
    for split, source in layout.find(data_dir).items():
        bad = BadRows(on_bad_rows)
        splits[split] = _read_split(source, bad)
        skipped[split] = bad.count
    return Dataset(name, splits, Classification(class_names=CLASS_NAMES), skipped)


def recipe(encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    """The paper's on SNLI."""
    return recipes.paper_pairs(encoder, Classification(class_names=CLASS_NAMES))


def _read_split(source: TextFile, bad: BadRows) -> Split:
    to_class = {name: index for index, name in enumerate(CLASS_NAMES)}
    texts: list[str | tuple[str, str]] = []
    labels: list[int] = []
    without_label = 0
    rows = _jsonl_rows if source.name.endswith(".jsonl") else _txt_rows
    for line, label, premise, hypothesis in rows(source, bad):
        if label == "-":
            without_label += 1
            continue
        if not isinstance(label, str) or label not in to_class:
            bad.report(
                f"unknown label {label!r}: it is none of {', '.join(CLASS_NAMES)}", source, line
            )
            continue
        if not isinstance(premise, str) or not isinstance(hypothesis, str):
            bad.report("a sentence that is not a string", source, line)
            continue
        if problem := text_problem(premise) or text_problem(hypothesis):
            bad.report(problem, source, line)
            continue
        texts.append((premise, hypothesis))
        labels.append(to_class[label])
    if without_label:
        _log.info("%s: %d rows without a gold label dropped", source, without_label)
    check_not_empty(len(texts), source, bad)
    return Split(texts, np.array(labels, np.int32))


def _jsonl_rows(source: TextFile, bad: BadRows) -> Iterator[_Line]:
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            row = json_object(line)
        except ValueError as error:
            bad.report(str(error), source, number)
            continue
        if missing := [column for column in COLUMNS if column not in row]:
            bad.report(f"no key {missing[0]!r}", source, number)
            continue
        yield number, row["gold_label"], row["sentence1"], row["sentence2"]


def _txt_rows(source: TextFile, bad: BadRows) -> Iterator[_Line]:
    lines = source.lines()
    header = next(lines)[1].rstrip("\r\n").split("\t")
    if missing := [column for column in COLUMNS if column not in header]:
        raise DataError(
            f"no column {missing[0]!r} in the header",
            where=str(source),
            line=1,
            hint="The official file starts with the names of its columns, parted by tabs",
        )
    places = [header.index(column) for column in COLUMNS]
    for number, line in lines:
        fields = line.rstrip("\r\n").split("\t")
        if fields == [""]:
            continue
        if problem := encoding_problem(line):
            bad.report(problem, source, number)
        elif not max(places) < len(fields) <= len(header):
            bad.report(f"{len(fields)} columns, not {len(header)}", source, number)
        else:
            label, premise, hypothesis = (fields[place] for place in places)
            yield number, label, premise, hypothesis
