"""What the generated data sets share: how they are split, and their options.

Both come from small grammars (`demo_reviews`, `demo_captions`), which decide the label and know
which words decided it, so that attention can be scored against `Split.decisive`. One pair of words
in six is held out (`demo_grammar.is_held_out`, a checksum of the two words): a held-out pair never
meets in a sentence of the training split, and every review and every premise of the dev and test
splits is built around at least one. Single words are no obstacle: each word of dev and test occurs
in train.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from dsa_keras.datasets.option import DATA_SEED, Option
from dsa_keras.errors import ConfigError

T = TypeVar("T")

MIN_SIZE = 150
"""The fewest examples; below, training would lack words that the test needs."""

TRIES = 20_000
"""How often a sentence is generated until it is a new one."""

OPTIONS = (Option("--size", "size", "number of examples", kind=int, metavar="N"), DATA_SEED)
"""What both data sets take."""


def split_sizes(size: int, per_premise: int = 1) -> dict[str, int]:
    """How many sentences, or premises with so many examples each, every split has.

    Raises:
        ConfigError: if there would be too few.
    """
    if size < MIN_SIZE:
        raise ConfigError(
            f"size is {size}, too small for train, dev and test",
            hint=f"Ask for at least {MIN_SIZE} examples",
        )
    count = size // per_premise
    tenth = count // 10
    return {"train": count - 2 * tenth, "dev": tenth, "test": tenth}


def first(candidates: Iterator[T]) -> T:
    """The first of the candidates.

    Raises:
        ConfigError: if there is none.
    """
    for candidate in candidates:
        return candidate
    raise ConfigError(
        "the demo grammar ran out of new sentences", hint="Ask for fewer examples (a smaller size)"
    )
