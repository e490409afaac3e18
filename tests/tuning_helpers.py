"""Searches small enough for tests: tiny networks, few examples, oracles driven without training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.runs import SMALL
from tuning.settings import SearchFolder, Settings
from tuning.spaces import SPACES, Row, row

TINY: tuple[Row, ...] = (
    row("units", (8, 4, 6)),
    row("num_iterations", (2, 1)),
    row("optimizer", ("adam", "adadelta")),
    row("learning_rate", (0.01, 0.001), optimizer="adam"),
    row("learning_rate", (1.0, 0.5, 0.1), optimizer="adadelta"),
)
"""3 * 2 * (2 + 3) = 30 candidates."""

FRAGILE: tuple[Row, ...] = (row("units", (8, 4)), row("learning_rate", (0.01, 1e30)))
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


def settings(**changes: Any) -> Settings:
    fixed = {name: value for name, value in SMALL.items() if name != "units"}
    fixed |= {"kernel_sizes": [3], "batch_size": 64, "early_stopping": 0}
    fixed |= changes.pop("fixed", {})
    values = {"task": "demo-sentiment", "data_options": {"size": 300}, "space": "tiny"}
    return Settings(**{**values, "fixed": fixed, "epochs": 2, "tuner": "random", **changes})


def hypermodel(of: Settings) -> Any:
    from tuning.candidates import ClassifierHyperModel

    return ClassifierHyperModel(of, num_classes=2, vocabulary_size=50, embedding_dim=8)


class Driven:
    """A search whose trials are scored by a function instead of being trained."""

    def __init__(self, path: Path, of: Settings) -> None:
        from tuning.clock import Clock
        from tuning.oracles import build_oracle
        from tuning.recovery import repair

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

    def end(self, trial: Any, accuracy: float | None) -> None:
        from tuning.records import COMPLETED, FAILED, Outcome, TrialFolder

        files = TrialFolder(self.folder.trials_dir / trial.trial_id)
        if accuracy is None:
            files.save_outcome(Outcome(FAILED, "it was asked to"))
            trial.status = FAILED
        else:
            files.save_outcome(Outcome(COMPLETED, None, accuracy, 1, 1, 1.0))
            self.oracle.update_trial(trial.trial_id, {"dev_accuracy": accuracy})
            trial.status = COMPLETED
        self.oracle.end_trial(trial)

    def values(self) -> list[dict[str, Any]]:
        return [dict(one.hyperparameters.values) for _, one in sorted(self.oracle.trials.items())]


def by_units(values: dict[str, Any]) -> float:
    """Larger is better; the learning rate breaks ties."""
    rate = next(value for name, value in values.items() if name.startswith("learning_rate"))
    return values["units"] / 10 + rate / 1000
