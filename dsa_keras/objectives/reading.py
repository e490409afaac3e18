"""How much of a text a model could read: an answer about unknown words is a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reading:
    """How much of one text was read, sentence by sentence.

    Attributes:
        names: of the sentences of the text.
        counts: the words of each that were read.
        known: how many of them the model knows.
        shortened: for each, whether it was cut, since it has more words than are read.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    known: tuple[int, ...]
    shortened: tuple[bool, ...]

    @property
    def words(self) -> int:
        """How many words were read."""
        return sum(self.counts)

    @property
    def known_words(self) -> int:
        """How many of them the model knows."""
        return sum(self.known)

    @property
    def cut(self) -> bool:
        """Whether words at the end were left out."""
        return any(self.shortened)

    @staticmethod
    def columns() -> list[str]:
        """Names of the values that are written beside an answer."""
        return ["words", "known_words", "cut"]

    def to_dict(self) -> dict[str, Any]:
        """These values, ready for JSON."""
        return {name: getattr(self, name) for name in self.columns()}

    def notes(self) -> list[str]:
        """What a person should know before trusting the answer; nothing as a rule."""
        found = []
        rows = zip(self.names, self.counts, self.known, self.shortened, strict=True)
        for name, words, known, cut in rows:
            whose = f"{name}: " if len(self.names) > 1 else ""
            if not words:
                found.append(f"{whose}there is no word in it")
            elif not known:
                found.append(f"{whose}no word of it is known to the model")
            if cut:
                found.append(f"{whose}it was cut, only the first {words:,} words were read")
        return found
