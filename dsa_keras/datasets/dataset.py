"""What every data set is, wherever it came from: named splits of texts with their targets."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import PAIR, SENTENCE, Inputs, Text
from dsa_keras.objectives import Objective


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    Attributes:
        texts: a sentence per example, or a (premise, hypothesis) pair per example.
        targets: an array with the target of each example, as the data set's objective reads them:
            of classification the numbers of the classes, of regression the numbers themselves.
        decisive: for generated data, which words decide the label: per example the indices of those
            words (of the hypothesis, for pairs) after white-space splitting; None where nobody
            knows.
    """

    texts: Sequence[Text]
    targets: np.ndarray
    decisive: Sequence[tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Origin:
    """How a data set was loaded, so that it can be loaded again.

    Attributes:
        data_dir: the folder of the data, if there is one.
        options: of `load_dataset`.
    """

    data_dir: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """Named splits, and what a model is to say about their texts.

    Example:
    ```python
    Dataset(
        "mine",
        {"train": Split(texts, labels), "dev": Split(more_texts, more_labels)},
        Classification(class_names=("bad", "good")),
    )
    ```

    Attributes:
        name: the name it was asked for by.
        splits: by name; training needs `train`, and `dev` to choose the epoch by.
        objective: what a target is, with what the data says of it, such as the names of classes.
        skipped: rows left out on request because they were bad, by split.
        origin: how it was loaded; None for one made in Python.

    Raises:
        DataError: if the splits do not all have sentences or all pairs, if one has not as many
            targets as texts, or a target that cannot be.
    """

    name: str
    splits: Mapping[str, Split]
    objective: Objective
    skipped: Mapping[str, int] = field(default_factory=dict)
    origin: Origin | None = None

    def __post_init__(self) -> None:
        checked = {name: self._checked(name, split) for name, split in self.splits.items()}
        object.__setattr__(self, "splits", checked)

    @property
    def inputs(self) -> Inputs:
        """What an example is: one sentence or two."""
        splits = self.splits.values()
        pair = any(not isinstance(text, str) for split in splits for text in split.texts[:1])
        return PAIR if pair else SENTENCE

    def __getitem__(self, split: str) -> Split:
        return self.splits[split]

    def part(self, split: str) -> Split:
        """A split, which must be there and have examples.

        Raises:
            DataError: if there is none.
        """
        if split not in self.splits or not len(self.splits[split]):
            raise DataError(
                f"the data has no {split} split",
                where=self.name,
                hint=f"It has {', '.join(self.splits)}: choose with --split",
            )
        return self.splits[split]

    def loaded_from(self, name: str, origin: Origin) -> Dataset:
        """The same with its origin told: the name it was asked for by, and how it was loaded."""
        told = copy.copy(self)
        object.__setattr__(told, "name", name)
        object.__setattr__(told, "origin", origin)
        return told

    def _checked(self, name: str, split: Split) -> Split:
        where = f"{self.name}, split {name}"
        try:
            texts = self.inputs.checked(split.texts)
        except ConfigError as error:
            raise DataError(error.problem, where=where, hint=error.hint) from None
        try:
            targets = self.objective.checked_targets(split.targets)
        except (ValueError, TypeError) as error:
            raise DataError(str(error), where=where, hint="Mend the targets") from None
        if targets.shape[:1] != (len(texts),):
            raise DataError(
                f"has {len(texts):,} texts and targets of shape {targets.shape}",
                where=where,
                hint="Give a target for each text",
            )
        if split.decisive is not None and len(split.decisive) != len(texts):
            raise DataError(
                f"has {len(texts):,} texts and decisive words of {len(split.decisive):,}",
                where=where,
                hint="Give those of each text, or None",
            )
        return replace(split, texts=texts, targets=targets)
