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
from dsa_keras.objectives.monitor import Monitor


@dataclass
class Schedule:
    """The state of a training between two epochs.

    Attributes:
        config: the settings of the schedule.
        monitor: says which figures are better.
        epoch: epochs finished.
        learning_rate: of the next epoch.
        best_loss: lowest training loss so far, by the plateau's measure of progress.
        bad_losses: epochs since then.
        best_figure: the best figure of the dev split so far; None before the first epoch.
        best_dev_loss: the loss of the dev split in that epoch; -inf where it is not known.
        best_epoch: the epoch that had both, counted from 1.
        improved_epoch: the epoch that reached the best figure first.
    """

    config: TrainingConfig
    monitor: Monitor
    epoch: int = 0
    learning_rate: float = 0.0
    best_loss: float = math.inf
    bad_losses: int = 0
    best_figure: float | None = None
    best_dev_loss: float = -math.inf
    best_epoch: int = 0
    improved_epoch: int = 0

    def __post_init__(self) -> None:
        self.learning_rate = self.learning_rate or self.config.learning_rate

    def finish_epoch(self, loss: float, figure: float, dev_loss: float = math.inf) -> bool:
        """Takes the figures of the epoch that just ended; True if it is the best so far.

        The learning rate is lowered when the training loss has not improved by `plateau_min_delta`
        for `plateau_patience` epochs. Of epochs with the same figure, the one with the lowest loss
        of the dev split is the best; that alone does not put off the early stop.
        """
        self.epoch += 1
        if loss < self.best_loss - self.config.plateau_min_delta:
            self.best_loss, self.bad_losses = loss, 0
        else:
            self.bad_losses += 1
            if self.bad_losses >= self.config.plateau_patience:
                self.learning_rate *= self.config.plateau_factor
                self.bad_losses = 0
        if self.best_figure is None or self.monitor.better(figure, self.best_figure):
            self.best_figure, self.improved_epoch = figure, self.epoch
        elif figure != self.best_figure or not dev_loss < self.best_dev_loss:
            return False
        self.best_epoch, self.best_dev_loss = self.epoch, dev_loss
        return True

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the figure of dev has not improved for long enough."""
        waited = self.epoch - self.improved_epoch
        stopped = 0 < self.config.early_stopping <= waited
        return stopped or self.epoch >= self.config.epochs

    def state(self) -> dict[str, Any]:
        """All but the config, as plain values."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del values["config"], values["monitor"]
        return values

    @classmethod
    def of_state(
        cls, config: TrainingConfig, monitor: Monitor, state: Mapping[str, Any]
    ) -> Schedule:
        """The schedule that `state` told.

        Older ones call the figure an accuracy, and broke no ties: the best epoch was the first.

        Raises:
            TypeError: if it is no such state.
        """
        state = dict(state)
        if "best_accuracy" in state:
            state["best_figure"] = state.pop("best_accuracy")
        state.setdefault("improved_epoch", state.get("best_epoch", 0))
        return cls(config, monitor, **state)
