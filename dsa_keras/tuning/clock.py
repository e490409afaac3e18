"""The time budget of a search, over all the sessions it takes."""

from __future__ import annotations

import json
import time
from pathlib import Path

from dsa_keras.files import write_json


class Clock:
    """Counts the seconds of searching, those of earlier sessions included.

    Args:
        file: where they are kept.
        max_minutes: the budget, or None.
    """

    def __init__(self, file: Path, max_minutes: float | None) -> None:
        self.file, self.max_minutes = file, max_minutes
        self.before = _read(file)
        self.start = time.monotonic()

    @property
    def used(self) -> float:
        """Seconds used so far."""
        return self.before + time.monotonic() - self.start

    @property
    def left(self) -> float | None:
        """Seconds left, or None without a budget."""
        return None if self.max_minutes is None else max(0.0, 60 * self.max_minutes - self.used)

    def is_up(self) -> bool:
        """Whether the budget is used up."""
        return self.left == 0.0

    def save(self) -> None:
        """Keeps what was used, so that a kill costs little of the count."""
        write_json(self.file, {"seconds": self.used})


def _read(file: Path) -> float:
    try:
        return float(json.loads(file.read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
