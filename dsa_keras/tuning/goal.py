"""The figure that a search is after: which one it is, what it is called, and what is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsa_keras.objectives.monitor import Monitor
from dsa_keras.runs.run import Record


@dataclass(frozen=True)
class Goal:
    """The monitored figure of the dev split.

    Attributes:
        monitor: which one it is.
    """

    monitor: Monitor

    @property
    def key(self) -> str:
        """What the records of a run call the figure."""
        return self.monitor.key

    @property
    def title(self) -> str:
        """What people call it."""
        return self.monitor.title

    @property
    def direction(self) -> str:
        """KerasTuner's word for what is better."""
        return "max" if self.monitor.higher_is_better else "min"

    def merit(self, figure: float) -> float:
        """The figure turned so that more is better, to sort by."""
        return figure if self.monitor.higher_is_better else -figure

    def best(self, epochs: Sequence[Record]) -> Record:
        """The record of the best of some epochs."""
        return self.monitor.best(epochs)

    def best_figure(self, epochs: Sequence[Record]) -> float:
        """The best figure of some epochs."""
        return float(self.best(epochs)[self.key])
