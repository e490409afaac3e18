"""The figure of the dev split that chooses the epoch: what it is called, and what is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dsa_keras.errors import ConfigError, nearest
from dsa_keras.objectives.objective import LOSS, Objective


class Monitor:
    """A figure of the dev split, the objective's own unless another is named.

    Example:

    >>> from dsa_keras.objectives.classification import Classification
    >>> Monitor(Classification(), "macro-f1").key
    'dev_macro_f1'

    Args:
        objective: knows which figures there are.
        name: one of them, such as `macro-f1` or `loss`; "" is the objective's own.

    Raises:
        ConfigError: if the objective has no such figure.
    """

    def __init__(self, objective: Objective, name: str = "") -> None:
        self.name = name or _told(objective.monitor)
        figures = objective.monitored()
        known = {_told(figure): figure for figure in figures}
        if self.name not in known:
            raise ConfigError(
                f"monitor is {self.name!r}, which {objective.name} does not have",
                hint=nearest(self.name, list(known)),
            )
        self.figure = known[self.name]
        self.higher_is_better = figures[self.figure]
        self.objective = objective

    @property
    def of_evaluations(self) -> str:
        """What `Evaluation.figures` has of it: itself, or for the loss the objective's own."""
        return self.objective.monitor if self.figure == LOSS else self.figure

    @property
    def key(self) -> str:
        """What the records of a run call it."""
        return f"dev_{self.figure}"

    @property
    def title(self) -> str:
        """What people call it."""
        return f"dev {self.name}"

    def better(self, one: float, other: float) -> bool:
        """Whether a value beats another; any number beats one that is none."""
        if math.isnan(other):
            return not math.isnan(one)
        return one > other if self.higher_is_better else one < other

    def best(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The record of the epoch whose weights were kept, of some first epochs of a run.

        Records say since when they do whether they were the best so far, since ties are broken by
        the loss of the dev split now. Of records that do not, it is the earliest of the best.
        """
        told = [record for record in records if "best" in record]
        kept = [record for record in told if record["best"]]
        if kept:
            return dict(kept[-1])
        best = records[0]
        for record in records[1:]:
            if "best" not in record and self.better(record[self.key], best[self.key]):
                best = record
        return dict(best)


def _told(figure: str) -> str:
    """The name of a figure as it is typed."""
    return figure.replace("_", "-")
