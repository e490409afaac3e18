"""What is kept of every trial, in files that appear whole or not at all.

candidate.json says what the trial is: its point of the space, its recipe, its size. outcome.json
says how it ended; a trial without one is not finished. Reports are made of these files, and
KerasTuner's own state can be made again from them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.files import write_json
from dsa_keras.runs import Run, format_1
from dsa_keras.runs.run import Record

COMPLETED, FAILED, INVALID = "COMPLETED", "FAILED", "INVALID"
"""How a trial can end, in KerasTuner's words: an infeasible one is invalid, not failed."""


@dataclass(frozen=True)
class CandidateRecord:
    """What a trial is.

    Attributes:
        trial: its number.
        values: the point of the space as KerasTuner has it.
        searched: the hyper-parameters that the search chose.
        model: all of the network. Older records have it flat.
        training: all of the training; its `epochs` are those of this trial.
        parameters: trainable parameters.
        continues: the trial whose run this one goes on with, in Hyperband.
    """

    trial: str
    values: Mapping[str, Any]
    searched: Mapping[str, Any]
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    parameters: int
    continues: str | None = None

    def hyper_parameters(self) -> dict[str, Any]:
        """All that was chosen, by name, without what the data decides."""
        if isinstance(self.model["encoder"], str):
            return format_1.hyper_parameters({"model": self.model, "training": self.training})
        training = TrainingConfig.from_dict(self.training)
        return Recipe(ModelConfig.from_dict(self.model), training).hyper_parameters()


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        status: `COMPLETED`, `FAILED` or `INVALID`.
        reason: why it failed or was not run.
        figure: the monitored figure of the best epoch.
        best_epoch: counted from 1.
        epochs: how many were trained, those of the trial it continues included.
        seconds: of training, without those of the trial it continues.
        time: when it ended.
    """

    status: str
    reason: str | None = None
    figure: float | None = None
    best_epoch: int | None = None
    epochs: int = 0
    seconds: float = 0.0
    time: str = ""

    @classmethod
    def of(cls, **values: Any) -> Outcome:
        """The outcome that a file tells; older files call the figure an accuracy."""
        if "dev_accuracy" in values:
            values["figure"] = values.pop("dev_accuracy")
        return cls(**values)


class TrialFolder:
    """The folder of a trial by its path."""

    def __init__(self, path: Path) -> None:
        self.path, self.id = path, path.name
        self.candidate_file = path / "candidate.json"
        self.outcome_file = path / "outcome.json"
        self.starts_file = path / "starts.json"
        self.owner_file = path / "owner.json"
        self.run = Run(path / "run")

    def candidate(self) -> CandidateRecord | None:
        """What the trial is, or None where that is not known."""
        return _read(CandidateRecord, self.candidate_file)

    def save_candidate(self, record: CandidateRecord) -> None:
        """Writes `candidate.json`."""
        write_json(self.candidate_file, asdict(record))

    def outcome(self) -> Outcome | None:
        """How the trial ended, or None if it has not."""
        return _read(Outcome.of, self.outcome_file)

    def save_outcome(self, outcome: Outcome) -> None:
        """Writes `outcome.json`, with the time."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_json(self.outcome_file, {**asdict(outcome), "time": now})

    def epochs(self) -> list[Record]:
        """The figures of each finished epoch.

        Raises:
            RunError: if they cannot be read.
        """
        return self.run.records()


def trial_folders(trials_dir: Path) -> list[TrialFolder]:
    """All trials, in the order of their numbers."""
    if not trials_dir.is_dir():
        return []
    folders = [path for path in trials_dir.iterdir() if path.is_dir() and path.name.isdigit()]
    return [TrialFolder(path) for path in sorted(folders)]


T = TypeVar("T")


def _read(kind: Callable[..., T], path: Path) -> T | None:
    """The record in a file, or None if there is no file or it is not whole."""
    try:
        return kind(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
