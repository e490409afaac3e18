"""What is decided after each epoch: learning rate, whether this is the best one, whether to stop.

Plain numbers in, plain numbers out, and the whole state as a dictionary, so that a run that was
stopped goes on exactly where it was.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsa_keras.config import TrainingConfig
from dsa_keras.objectives import Objective


@dataclass
class Schedule:
    """The state of a training between two epochs.

    Attributes:
        config: the settings of the schedule.
        objective: says which figures are better.
        epoch: epochs finished.
        learning_rate: of the next epoch.
        best_loss: lowest training loss so far, by the plateau's measure of progress.
        bad_losses: epochs since then.
        best_figure: the best figure of the dev split so far; None before the first epoch.
        best_epoch: the epoch that had it, counted from 1.
    """

    config: TrainingConfig
    objective: Objective
    epoch: int = 0
    learning_rate: float = 0.0
    best_loss: float = math.inf
    bad_losses: int = 0
    best_figure: float | None = None
    best_epoch: int = 0

    def __post_init__(self) -> None:
        self.learning_rate = self.learning_rate or self.config.learning_rate

    def finish_epoch(self, loss: float, figure: float) -> bool:
        """Takes the figures of the epoch that just ended; True if it is the best so far.

        The learning rate is lowered when the training loss has not improved by `plateau_min_delta`
        for `plateau_patience` epochs.
        """
        self.epoch += 1
        if loss < self.best_loss - self.config.plateau_min_delta:
            self.best_loss, self.bad_losses = loss, 0
        else:
            self.bad_losses += 1
            if self.bad_losses >= self.config.plateau_patience:
                self.learning_rate *= self.config.plateau_factor
                self.bad_losses = 0
        if self.best_figure is None or self.objective.better(figure, self.best_figure):
            self.best_figure, self.best_epoch = figure, self.epoch
            return True
        return False

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the figure of dev has not improved for long enough."""
        waited = self.epoch - self.best_epoch
        stopped = 0 < self.config.early_stopping <= waited
        return stopped or self.epoch >= self.config.epochs

    def state(self) -> dict[str, Any]:
        """All but the config, as plain values."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del values["config"], values["objective"]
        return values

    @classmethod
    def of_state(
        cls, config: TrainingConfig, objective: Objective, state: Mapping[str, Any]
    ) -> Schedule:
        """The schedule that `state` told; older ones call the figure an accuracy.

        Raises:
            TypeError: if it is no such state.
        """
        state = dict(state)
        if "best_accuracy" in state:
            state["best_figure"] = state.pop("best_accuracy")
        return cls(config, objective, **state)
