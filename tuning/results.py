"""What a search found, read from the trials' own records."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning.records import COMPLETED, FAILED, CandidateRecord, Outcome, trial_folders
from tuning.settings import SearchFolder, Settings

_FILE_OPTIONS = {"path": "file", "train": "train-file", "dev": "dev-file", "test": "test-file"}
"""What the command line calls the options of `load_dataset` that have another name there."""


@dataclass(frozen=True)
class Trained:
    """A candidate that was trained.

    Attributes:
        record: what it is.
        outcome: how it ended.
        accuracies: the dev accuracy of each epoch.
        is_paper: whether everything searched has the paper's value.
    """

    record: CandidateRecord
    outcome: Outcome
    accuracies: tuple[float, ...]
    is_paper: bool

    @property
    def accuracy(self) -> float:
        """The best dev accuracy."""
        assert self.outcome.dev_accuracy is not None
        return self.outcome.dev_accuracy

    def accuracy_within(self, epochs: int) -> float:
        """The best dev accuracy of the first epochs."""
        return max(self.accuracies[:epochs])


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
        return min((len(one.accuracies) for one in self.trained), default=0)

    def front(self) -> list[Trained]:
        """Candidates that no smaller (or equal) one beats or equals, the smallest first."""
        found: list[Trained] = []
        for one in sorted(self.trained, key=lambda one: (one.record.parameters, -one.accuracy)):
            if not found or one.accuracy > found[-1].accuracy:
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
            accuracies = tuple(epoch["dev_accuracy"] for epoch in files.epochs())
            is_paper = _is_paper(settings, record)
            trained.pop(record.continues or "", None)
            trained[files.id] = Trained(record, outcome, accuracies, is_paper)
        elif outcome.status == FAILED:
            failed.append((files.id, outcome.reason or ""))
        else:
            infeasible += 1
    order = sorted(trained.values(), key=lambda one: (-one.accuracy, one.record.parameters))
    return Results(settings, tuple(order), tuple(failed), infeasible, tuple(unfinished))


def winner_config(winner: Trained) -> dict[str, Any]:
    """The hyper-parameters of the winner, without what the data decides."""
    model = dict(winner.record.model)
    for name in ("vocabulary_size", "num_classes"):
        model.pop(name)
    return {"model": model, "training": dict(winner.record.training)}


def winner_command(settings: Settings, config: Path) -> str:
    """The command line that trains the winner."""
    parts = ["python", "-m", "dsa_keras", "train", settings.task]
    if settings.data_dir is not None:
        parts += ["--data-dir", settings.data_dir]
    if settings.vectors:
        parts += ["--vectors", *settings.vectors]
    parts += _data_arguments(settings.data_options)
    parts += ["--config", str(config), "--run-dir", f"runs/{settings.task}-best"]
    return shlex.join(parts)


def _data_arguments(options: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    for name, value in options.items():
        if name == "phrases":
            parts += ["--sentences-only"]
            continue
        parts.append("--" + _FILE_OPTIONS.get(name, name).replace("_", "-"))
        parts += [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return parts


def _is_paper(settings: Settings, record: CandidateRecord) -> bool:
    base = settings.base(str(record.model["encoder"]))
    paper = {**base.model.to_dict(), **base.training.to_dict()}
    return all(
        paper[name] == (list(value) if isinstance(value, list | tuple) else value)
        for name, value in record.searched.items()
    )
