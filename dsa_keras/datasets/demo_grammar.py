"""What the two demo grammars share: reproducible choices, patterns, pairs held out of training.

A pattern is a line of words and slots. `{adj}` is a slot, filled with one word (or phrase) of the
list of that name; `*not` is a literal word that helps to decide the label. Filling a pattern gives
words that know their part in the sentence, so nothing has to be guessed from the text afterwards.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

T = TypeVar("T")

HELD_OUT_ONE_IN = 6
"""One pair of words in this many is kept away from training."""


class Part(Enum):
    """The part a word plays in its sentence."""

    FILLER = "filler"
    TOPIC = "topic"
    VALUE = "value"
    OPERATOR = "operator"
    CONTRAST = "contrast"


class Word(NamedTuple):
    """A word of a generated sentence and the part it plays."""

    text: str
    part: Part = Part.FILLER


Fill = Callable[[str, Sequence[Word]], Sequence[Word]]
"""From the name of a slot and the words before it to the words that fill it."""


def pick(rng: random.Random, items: Sequence[T]) -> T:
    """Chooses one item.

    `random.random()` is the only method whose sequence Python promises to keep between versions.
    """
    return items[int(rng.random() * len(items))]


def shuffled(rng: random.Random, items: Sequence[T]) -> list[T]:
    """The items in random order, the same in every version of Python (see `pick`)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def is_held_out(first: str, second: str) -> bool:
    """Whether training never shows these two words together.

    It depends on the two words alone: not on a seed, a size, or the order of a word list.
    """
    return zlib.crc32(f"{first} {second}".encode()) % HELD_OUT_ONE_IN == 0


def has_held_out(pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether one of these pairs is held out."""
    return any(is_held_out(*pair) for pair in pairs)


def fill_pattern(pattern: str, fill: Fill, starred: Part = Part.OPERATOR) -> list[Word]:
    """Fills the slots of a pattern from left to right; starred words get the part `starred`."""
    words: list[Word] = []
    for token in _tokens(pattern):
        if token.startswith("{"):
            words.extend(fill(token[1:-1], words))
        elif token.startswith("*"):
            words.append(Word(token[1:], starred))
        else:
            words.append(Word(token))
    return words


@functools.cache
def _tokens(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split())


def with_articles(words: Sequence[Word]) -> list[Word]:
    """Turns "a" into "an" before a vowel; the word lists have no "hour" and no "unique"."""
    following = [*words[1:], Word("")]
    return [
        Word("an", word.part) if word.text == "a" and after.text[:1] in tuple("aeiou") else word
        for word, after in zip(words, following, strict=True)
    ]
