"""How much each hyper-parameter mattered, by a method that can be stated in two sentences.

The trials are grouped by the value of the hyper-parameter (by thirds, if it is a number with many
values), and the share of the variance of the monitored figure that lies between the groups is
taken, as epsilon squared, 1 - (n-1)/(n-k) SSW/SST, which expects nothing of chance and is cut off
at 0. The chance is how often as much is explained when the figures are dealt out to the trials at
random.

Each hyper-parameter is looked at alone: what two of them do only together is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PERMUTATIONS = 1999
_MOST_GROUPS = 6


@dataclass(frozen=True)
class Group:
    """The trials with one value, or with values in one range, of a hyper-parameter."""

    label: str
    trials: int
    mean: float


@dataclass(frozen=True)
class Importance:
    """What one hyper-parameter explains.

    Attributes:
        name: of the hyper-parameter.
        share: of the variance, 0 to 1; None if there are too few trials to tell.
        chance: how often chance explains as much.
        trials: on how many trials this rests.
        groups: the trials by value.
    """

    name: str
    share: float | None
    chance: float | None
    trials: int
    groups: tuple[Group, ...]


def importances(
    searched: Sequence[Mapping[str, Any]], figures: Sequence[float], seed: int = 0
) -> list[Importance]:
    """The importance of each hyper-parameter, the greatest first.

    Args:
        searched: the hyper-parameters of each trial; one may lack those that did not apply to it.
        figures: the figure of each trial.
        seed: of the random deals.
    """
    names = list(dict.fromkeys(name for one in searched for name in one))
    found = []
    for name in names:
        having = [number for number, one in enumerate(searched) if name in one]
        labels, codes = _grouped([searched[number][name] for number in having])
        values = np.asarray([figures[number] for number in having], float)
        groups = tuple(
            Group(label, int((codes == code).sum()), float(values[codes == code].mean()))
            for code, label in enumerate(labels)
        )
        share = explained(values, codes)
        chance = None if share is None else _chance(values, codes, np.random.default_rng(seed))
        found.append(Importance(name, share, chance, len(having), groups))
    return sorted(found, key=lambda one: -1.0 if one.share is None else one.share, reverse=True)


def explained(values: np.ndarray, codes: np.ndarray) -> float | None:
    """Epsilon squared of a grouping, or None where there is nothing to compare."""
    count, groups = len(values), len(np.unique(codes))
    total = float(((values - values.mean()) ** 2).sum()) if count else 0.0
    if groups < 2 or count <= groups or total == 0:
        return None
    return max(0.0, 1 - (count - 1) / (count - groups) * _within(values, codes) / total)


def _within(values: np.ndarray, codes: np.ndarray) -> float:
    counts = np.bincount(codes)
    means = np.bincount(codes, values) / np.maximum(counts, 1)
    return float(((values - means[codes]) ** 2).sum())


def _chance(values: np.ndarray, codes: np.ndarray, random: np.random.Generator) -> float:
    within = _within(values, codes) + 1e-12
    as_good = sum(_within(random.permutation(values), codes) <= within for _ in range(PERMUTATIONS))
    return (1 + as_good) / (1 + PERMUTATIONS)


def _grouped(values: Sequence[Any]) -> tuple[list[str], np.ndarray]:
    """The groups' labels, and the group of each value."""
    plain = [tuple(value) if isinstance(value, list) else value for value in values]
    distinct = sorted(set(plain), key=lambda value: (str(type(value)), value))
    numbers = all(isinstance(value, int | float) for value in distinct)
    if len(distinct) <= _MOST_GROUPS or not numbers:
        return [label(value) for value in distinct], np.array([distinct.index(v) for v in plain])
    cuts = np.quantile(np.array(plain, float), [1 / 3, 2 / 3])
    codes = np.searchsorted(cuts, np.array(plain, float), side="left")
    labels = [f"up to {cuts[0]:.3g}", f"up to {cuts[1]:.3g}", f"above {cuts[1]:.3g}"]
    kept = np.unique(codes)
    return [labels[code] for code in kept], np.searchsorted(kept, codes)


def label(value: Any) -> str:
    """A value of a hyper-parameter as people write it."""
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
