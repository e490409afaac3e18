"""What every data set is, wherever it came from: named splits of texts and integer labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Text = str | tuple[str, str]
"""One example's text: a sentence, or (premise, hypothesis)."""


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    Attributes:
        texts: a sentence per example, or a (premise, hypothesis) pair per example.
        labels: int32 array, one index into the data set's `class_names` per example.
        decisive: for generated data, which words decide the label: per example the indices of those
            words (of the hypothesis, for pairs) after white-space splitting; None where nobody
            knows.
    """

    texts: Sequence[Text]
    labels: np.ndarray
    decisive: Sequence[tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Dataset:
    """Named splits over one list of classes.

    Attributes:
        name: the name it was asked for by.
        splits: "train", "dev" and "test", those that are present.
        class_names: the name of each label, in label order.
        skipped: rows left out on request because they were bad, by split.
    """

    name: str
    splits: dict[str, Split]
    class_names: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def is_pair(self) -> bool:
        """Whether each example has two sentences."""
        splits = self.splits.values()
        return any(isinstance(text, tuple) for split in splits for text in split.texts[:1])

    def __getitem__(self, split: str) -> Split:
        return self.splits[split]
