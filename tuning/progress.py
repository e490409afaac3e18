"""What the user sees of a search: which trial of how many, the best so far, the time left."""

from __future__ import annotations

import time

from tuning.clock import Clock
from tuning.importance import label
from tuning.records import COMPLETED, INVALID, TrialFolder, trial_folders
from tuning.settings import SearchFolder


class Progress:
    """Prints a line when a trial begins and when it ends.

    Args:
        folder: of the search; the trials of all workers are counted.
        clock: of the time budget.
        trials: how many are planned.
        epochs: how many epochs these take together.
        alone: whether nobody else works on the search, so that the time left can be told.
    """

    def __init__(
        self, folder: SearchFolder, clock: Clock, trials: int, epochs: int, alone: bool
    ) -> None:
        self.folder, self.clock, self.alone = folder, clock, alone
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
            text = f"dev accuracy {outcome.dev_accuracy:.4f} (epoch {outcome.best_epoch})"
        else:
            text = f"failed: {outcome.reason}"
        print(f"{number}: {text}; {self.summary()}", flush=True)

    def summary(self) -> str:
        """The best so far, and the time left."""
        best, epochs, seconds = None, 0, 0.0
        for files in trial_folders(self.folder.trials_dir):
            outcome = files.outcome()
            if outcome is None or outcome.status != COMPLETED:
                continue
            record = files.candidate()
            past = (
                TrialFolder(files.path.parent / record.continues)
                if record and (record.continues)
                else None
            )
            before = past.outcome() if past else None
            epochs += outcome.epochs - (before.epochs if before else 0)
            seconds += outcome.seconds
            assert outcome.dev_accuracy is not None
            if best is None or outcome.dev_accuracy > best[0]:
                best = (outcome.dev_accuracy, files.id)
        text = f"best so far {best[0]:.4f} (trial {best[1]})" if best else "no trial finished yet"
        if not self.alone or not epochs:
            return text
        left = max(0, self.epochs - epochs) * seconds / epochs
        if self.clock.left is not None:
            left = min(left, self.clock.left)
        return f"{text}, about {duration(left)} left"

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
