"""The figure that a search is after: which one it is, what it is called, and what is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsa_keras.objectives import Objective
from dsa_keras.runs.run import Record, best_record


@dataclass(frozen=True)
class Goal:
    """The monitored figure of the dev split, which the objective names.

    Attributes:
        objective: of the task.
    """

    objective: Objective

    @property
    def key(self) -> str:
        """What the records of a run call the figure."""
        return self.objective.dev_figure

    @property
    def title(self) -> str:
        """What people call it."""
        return f"dev {self.objective.monitor}"

    @property
    def direction(self) -> str:
        """KerasTuner's word for what is better."""
        return "max" if self.objective.higher_is_better else "min"

    def merit(self, figure: float) -> float:
        """The figure turned so that more is better, to sort by."""
        return figure if self.objective.higher_is_better else -figure

    def best(self, epochs: Sequence[Record]) -> Record:
        """The record of the best of some epochs."""
        return best_record(epochs, self.objective)

    def best_figure(self, epochs: Sequence[Record]) -> float:
        """The best figure of some epochs."""
        return float(self.best(epochs)[self.key])
