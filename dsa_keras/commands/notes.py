"""What `predict` says on standard error of answers that mean little."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dsa_keras.inputs import Text
from dsa_keras.objectives import Answer

_MOST = 5
"""Notes that are told one by one."""


class Notes:
    """Says which answers mean little, such as that no word was known; of many, how many."""

    def __init__(self) -> None:
        self.texts = self.noted = 0

    def __call__(self, texts: Sequence[Text], answers: Sequence[Answer]) -> None:
        """Looks at some answers."""
        for text, answer in zip(texts, answers, strict=True):
            self.texts += 1
            if not (notes := answer.notes()):
                continue
            self.noted += 1
            if self.noted <= _MOST:
                shown = text if isinstance(text, str) else " / ".join(text)
                shown = shown if len(shown) <= 40 else shown[:39] + "…"
                print(f"note: text {self.texts} ({shown}): {'; '.join(notes)}", file=sys.stderr)

    def finish(self) -> None:
        """Says how many were not told."""
        if self.noted > _MOST:
            print(f"note: and {self.noted - _MOST:,} more such texts", file=sys.stderr)
