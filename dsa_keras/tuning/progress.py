"""What the user sees of a search: which trial of how many, the best so far, the time left."""

from __future__ import annotations

import time

from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.goal import Goal
from dsa_keras.tuning.importance import label
from dsa_keras.tuning.records import COMPLETED, INVALID, Outcome, TrialFolder, trial_folders
from dsa_keras.tuning.settings import SearchFolder


class Progress:
    """Prints a line when a trial begins and when it ends.

    Args:
        folder: of the search; the trials of all workers are counted.
        goal: the figure that the search is after.
        clock: of the time budget.
        trials: how many are planned.
        epochs: how many epochs these take together.
        alone: whether nobody else works on the search, so that the time left can be told.
    """

    def __init__(
        self,
        folder: SearchFolder,
        goal: Goal,
        clock: Clock,
        trials: int,
        epochs: int,
        alone: bool,
    ) -> None:
        self.folder, self.goal, self.clock, self.alone = folder, goal, clock, alone
        self.trials, self.epochs = trials, epochs

    def wait(self) -> None:
        """Waits a moment for other workers."""
        time.sleep(0.5)

    def begin(self, files: TrialFolder) -> None:
        """A trial begins, or goes on."""
        record = files.candidate()
        assert record is not None
        done = len(files.epochs())
        how = f"goes on after epoch {done}, " if done else ""
        if record.continues:
            how += f"continues {record.continues}, "
        chosen = ", ".join(f"{name} {label(value)}" for name, value in record.searched.items())
        print(
            f"trial {self._number(files)} of {self.trials}: {how}{chosen}, "
            f"{record.parameters:,} parameters",
            flush=True,
        )

    def epoch(self) -> None:
        """An epoch ended."""
        if self.alone:
            self.clock.save()

    def end(self, files: TrialFolder) -> None:
        """A trial ended."""
        if self.alone:
            self.clock.save()
        outcome = files.outcome()
        number = f"trial {self._number(files)} of {self.trials}"
        if outcome is None:
            text = "stopped by the clock, to go on give more --max-minutes"
        elif outcome.status == COMPLETED:
            text = f"{self.goal.title} {outcome.figure:.4f} (epoch {outcome.best_epoch})"
        else:
            text = f"failed: {outcome.reason}"
        print(f"{number}: {text}; {self.summary()}", flush=True)

    def best(self) -> str:
        """The best trial so far."""
        found = [
            (self.goal.merit(outcome.figure), outcome.figure, files.id)
            for files, outcome in self._completed()
            if outcome.figure is not None
        ]
        if not found:
            return "no trial finished yet"
        _, figure, trial = max(found)
        return f"best so far {figure:.4f} (trial {trial})"

    def summary(self) -> str:
        """The best so far, and the time left if it can be told."""
        epochs, seconds = 0, 0.0
        for files, outcome in self._completed():
            record = files.candidate()
            epochs += outcome.epochs
            seconds += outcome.seconds
            if record and record.continues:
                epochs -= len(TrialFolder(files.path.parent / record.continues).epochs())
        if not self.alone or epochs <= 0:
            return self.best()
        left = max(0, self.epochs - epochs) * seconds / epochs
        if self.clock.left is not None:
            left = min(left, self.clock.left)
        return f"{self.best()}, about {duration(left)} left"

    def _completed(self) -> list[tuple[TrialFolder, Outcome]]:
        ended = [(one, one.outcome()) for one in trial_folders(self.folder.trials_dir)]
        return [(one, end) for one, end in ended if end and end.status == COMPLETED]

    def _number(self, files: TrialFolder) -> int:
        """The place of a trial among those that are not infeasible."""
        outcomes = (
            one.outcome() for one in trial_folders(self.folder.trials_dir) if one.id <= files.id
        )
        return sum(outcome is None or outcome.status != INVALID for outcome in outcomes)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever says it best."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
