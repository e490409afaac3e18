"""Searches small enough for tests: tiny networks, few examples, oracles driven without training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dsa_keras.config import ModelConfig
from dsa_keras.objectives import OBJECTIVES, register_objective
from dsa_keras.objectives.regression import Regression
from dsa_keras.tuning.settings import SearchFolder, Settings
from dsa_keras.tuning.spaces import SPACES, Space, row
from tests.runs import SMALL

TINY = Space(
    (
        row("units", (8, 4, 6)),
        row("num_iterations", (2, 1)),
        row("optimizer", ("adam", "adadelta")),
        row("learning_rate", (0.01, 0.001), optimizer="adam"),
        row("learning_rate", (1.0, 0.5, 0.1), optimizer="adadelta"),
    )
)
"""3 * 2 * (2 + 3) = 30 candidates."""

FRAGILE = Space((row("units", (8, 4)), row("learning_rate", (0.01, 1e30))))
"""With half of these the loss is not a number before the first epoch ends."""

EXTRA = {"tiny": TINY, "fragile": FRAGILE}


@contextlib.contextmanager
def extra_spaces() -> Iterator[None]:
    """The spaces above by their names."""
    SPACES.update(EXTRA)
    try:
        yield
    finally:
        for name in EXTRA:
            del SPACES[name]


@contextlib.contextmanager
def error_objective() -> Iterator[type[Regression]]:
    """An objective that monitors an error, of which less is better: `--target error`."""

    @register_objective("error")
    class Error(Regression):
        target_kind = "error"
        monitor = "mae"
        higher_is_better = False

    try:
        yield Error
    finally:
        del OBJECTIVES._found["error"]


def settings(**changes: Any) -> Settings:
    known = {*ModelConfig().choosable()} - {"units"}
    fixed = {name: value for name, value in SMALL.items() if name in known}
    fixed |= {"kernel_sizes": [3], "batch_size": 64, "early_stopping": 0}
    fixed |= changes.pop("fixed", {})
    values = {"task": "demo-sentiment", "data_options": {"size": 300}, "space": "tiny"}
    return Settings(**{**values, "fixed": fixed, "epochs": 2, "tuner": "random", **changes})


def hypermodel(of: Settings, size: int = 50, dimension: int = 8) -> Any:
    """A HyperModel without data: a vocabulary of that size, vectors of that dimension."""
    import numpy as np

    from dsa_keras.data.vocabulary import Vocabulary
    from dsa_keras.datasets import Dataset, Split
    from dsa_keras.training.task_data import TaskData
    from dsa_keras.tuning.candidates import NetworkHyperModel

    model = of.base(of.encoders[0]).model
    text = ("a", "b") if model.inputs.is_pair else "a"
    split = Split([text], np.zeros(1, int))
    dataset = Dataset(of.task, {"train": split}, model.objective)
    vocabulary = Vocabulary([f"w{number}" for number in range(size - 2)])
    matrix = np.zeros((size, dimension), np.float32)
    return NetworkHyperModel(of, dataset, TaskData(vocabulary, matrix, {}, {}))


class Driven:
    """A search whose trials are scored by a function instead of being trained."""

    def __init__(self, path: Path, of: Settings) -> None:
        from dsa_keras.tuning.clock import Clock
        from dsa_keras.tuning.oracles import build_oracle
        from dsa_keras.tuning.recovery import repair

        self.folder = SearchFolder(path)
        self.folder.open(of)
        self.clock = Clock(self.folder.clock_file, of.max_minutes)
        self.model = hypermodel(of)
        self.notes = repair(self.folder, build_oracle(of, self.model, self.folder, self.clock))
        self.oracle = build_oracle(of, self.model, self.folder, self.clock)
        self.oracle._set_project_dir(str(path), "tuner")
        if self.folder.oracle_file.exists():
            self.oracle.reload()

    def run(self, score: Callable[[dict[str, Any]], float | None], steps: int = 1000) -> list[str]:
        """Runs up to so many trials; a score of None is a failure. Returns their numbers."""
        done = []
        for _ in range(steps):
            trial = self.oracle.create_trial("tuner0")
            if trial.status == "STOPPED":
                break
            assert trial.status == "RUNNING"
            done.append(trial.trial_id)
            self.end(trial, score(dict(trial.hyperparameters.values)))
        return done

    def end(self, trial: Any, figure: float | None) -> None:
        from dsa_keras.tuning.records import COMPLETED, FAILED, Outcome, TrialFolder

        files = TrialFolder(self.folder.trials_dir / trial.trial_id)
        if figure is None:
            files.save_outcome(Outcome(FAILED, "it was asked to"))
            trial.status = FAILED
        else:
            files.save_outcome(Outcome(COMPLETED, None, figure, 1, 1, 1.0))
            self.oracle.update_trial(trial.trial_id, {self.oracle.objective.name: figure})
            trial.status = COMPLETED
        self.oracle.end_trial(trial)

    def values(self) -> list[dict[str, Any]]:
        return [dict(one.hyperparameters.values) for _, one in sorted(self.oracle.trials.items())]


def by_units(values: dict[str, Any]) -> float:
    """Larger is better; the learning rate breaks ties."""
    rate = next(value for name, value in values.items() if name.startswith("learning_rate"))
    return values["units"] / 10 + rate / 1000
