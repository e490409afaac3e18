"""Drawing train, dev and test from one list of rows: by class, seeded, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dsa_keras.errors import ConfigError, DataError

SPLITS = ("train", "dev", "test")
DEFAULT_FRACTIONS = (0.8, 0.1, 0.1)


def checked_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Gives the shares of train, dev and test as floats.

    Raises:
        ConfigError: if they are not three shares that add up to 1, with some for training.
    """
    try:
        train, dev, test = (float(fraction) for fraction in fractions)
        sound = train > 0 and dev >= 0 and test >= 0 and math.isclose(train + dev + test, 1)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ConfigError(
            f"they are {fractions!r}",
            where="--fractions",
            hint="Give the shares of train, dev and test, which add up to 1: 0.8 0.1 0.1",
        )
    return train, dev, test


def stratified(
    labels: Sequence[str], shares: tuple[float, float, float], seed: int, where: str
) -> dict[str, list[int]]:
    """Draws the rows of each split, class by class.

    Args:
        labels: the label of each row.
        shares: of train, dev and test, as `checked_fractions` gives them.
        seed: of the draw.
        where: the file to name in an error.

    Returns:
        Indices of the rows of each split, ascending. Every class has a row in train.

    Raises:
        DataError: if a split with a share gets no row.
    """
    by_label: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        by_label.setdefault(label, []).append(index)
    generator = np.random.default_rng(seed)
    chosen: dict[str, list[int]] = {split: [] for split in SPLITS}
    for label in sorted(by_label):
        indices = generator.permutation(by_label[label]).tolist()
        for split, size in zip(SPLITS, apportioned(len(indices), shares), strict=True):
            chosen[split] += indices[:size]
            indices = indices[size:]
    for split, share in zip(SPLITS, shares, strict=True):
        if share and labels and not chosen[split]:
            raise DataError(
                f"{len(labels)} rows are too few to draw a {split} split of {share:g} from",
                where=where,
                hint="Give other fractions (0 leaves a split out), a split column, or more rows",
            )
    return {split: sorted(indices) for split, indices in chosen.items()}


def apportioned(total: int, shares: tuple[float, float, float]) -> list[int]:
    """Whole numbers that add up to `total`, nearest to its shares, the first at least 1."""
    exact = [total * share for share in shares]
    sizes = [math.floor(size) for size in exact]
    by_remainder = sorted(range(3), key=lambda split: sizes[split] - exact[split])
    for split in by_remainder[: total - sum(sizes)]:
        sizes[split] += 1
    if sizes[0] == 0:
        largest = sizes.index(max(sizes))
        sizes[largest] -= 1
        sizes[0] = 1
    return sizes
