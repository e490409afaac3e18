"""What a search found, read from the trials' own records."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsa_keras.datasets import DATASETS
from dsa_keras.runs.run import Record
from dsa_keras.tuning.goal import Goal
from dsa_keras.tuning.records import COMPLETED, FAILED, CandidateRecord, Outcome, trial_folders
from dsa_keras.tuning.settings import SearchFolder, Settings


@dataclass(frozen=True)
class Trained:
    """A candidate that was trained.

    Attributes:
        record: what it is.
        outcome: how it ended.
        epochs: the figures of each epoch.
        goal: the figure that the search is after.
        is_paper: whether everything searched has the value of the task's recipe.
    """

    record: CandidateRecord
    outcome: Outcome
    epochs: tuple[Record, ...]
    goal: Goal
    is_paper: bool

    @property
    def figure(self) -> float:
        """The best figure."""
        assert self.outcome.figure is not None
        return self.outcome.figure

    @property
    def merit(self) -> float:
        """The best figure, turned so that more is better."""
        return self.goal.merit(self.figure)

    def figure_within(self, epochs: int) -> float:
        """The best figure of the first epochs."""
        return self.goal.best_figure(self.epochs[:epochs])


@dataclass(frozen=True)
class Results:
    """All trials of a search.

    Attributes:
        settings: of the search.
        trained: candidates that were trained to their end, the best first. Where Hyperband went on
            with a candidate, only the longest training of it counts.
        failed: trials that failed, with their reasons.
        infeasible: how many candidates were over the parameter budget.
        unfinished: trials that were begun and not ended.
    """

    settings: Settings
    trained: tuple[Trained, ...]
    failed: tuple[tuple[str, str], ...]
    infeasible: int
    unfinished: tuple[str, ...]

    @property
    def same_epochs(self) -> int:
        """Epochs that every trained candidate had, so that all can be compared."""
        return min((len(one.epochs) for one in self.trained), default=0)

    def front(self) -> list[Trained]:
        """Candidates that no smaller (or equal) one beats or equals, the smallest first."""
        found: list[Trained] = []
        for one in sorted(self.trained, key=lambda one: (one.record.parameters, -one.merit)):
            if not found or one.merit > found[-1].merit:
                found.append(one)
        return found


def read_results(folder: SearchFolder) -> Results:
    """Reads the folder of a search, finished or not."""
    settings = folder.settings()
    trained: dict[str, Trained] = {}
    failed, infeasible, unfinished = [], 0, []
    for files in trial_folders(folder.trials_dir):
        record, outcome = files.candidate(), files.outcome()
        if record is None:
            continue
        if outcome is None:
            unfinished.append(files.id)
        elif outcome.status == COMPLETED:
            is_paper = _is_paper(settings, record)
            trained.pop(record.continues or "", None)
            epochs = tuple(files.epochs())
            trained[files.id] = Trained(record, outcome, epochs, settings.goal, is_paper)
        elif outcome.status == FAILED:
            failed.append((files.id, outcome.reason or ""))
        else:
            infeasible += 1
    order = sorted(trained.values(), key=lambda one: (-one.merit, one.record.parameters))
    return Results(settings, tuple(order), tuple(failed), infeasible, tuple(unfinished))


def winner_config(winner: Trained) -> dict[str, Any]:
    """The hyper-parameters of the winner, as `--config` reads them."""
    return winner.record.hyper_parameters()


def winner_command(settings: Settings, config: Path) -> str:
    """The command line that trains the winner."""
    parts = ["dsa-keras", "train", settings.task]
    for module in settings.imports:
        parts += ["--import", module]
    if settings.data_dir is not None:
        parts += ["--data-dir", settings.data_dir]
    if settings.vectors:
        parts += ["--vectors", *settings.vectors]
    parts += DATASETS.get(settings.task).words(settings.data_options)
    parts += ["--config", str(config), "--run-dir", f"runs/{settings.task}-best"]
    return shlex.join(parts)


def _is_paper(settings: Settings, record: CandidateRecord) -> bool:
    of_recipe = settings.base(record.hyper_parameters()["encoder"]).hyper_parameters()
    return all(
        of_recipe[name] == (list(value) if isinstance(value, list | tuple) else value)
        for name, value in record.searched.items()
    )
