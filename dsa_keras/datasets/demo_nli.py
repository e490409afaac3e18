"""`demo-nli`: generated picture captions with a statement each, every label certain.

`demo_splits` says what is held out of training.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.demo_captions import Caption, Hypothesis, caption, hypothesis
from dsa_keras.datasets.demo_grammar import has_held_out, shuffled
from dsa_keras.datasets.demo_splits import OPTIONS, TRIES, first, split_sizes
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.encoders import Encoder
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import PAIR
from dsa_keras.objectives.classification import Classification

OBJECTIVE = Classification(class_names=("entailment", "neutral", "contradiction"))


def demo_nli(*, size: int = 9000, seed: int = 0) -> Dataset:
    """Picture captions, each with an entailed, a neutral and a contradictory statement.

    For "a smiling man in a red hat is playing the guitar in a park", with the words that decide in
    brackets:

    | label | hypothesis |
    |---|---|
    | entailment | the person is [playing] [music] and is [outdoors] |
    | entailment | the adult is [not] [sad] |
    | neutral | the man is [alone] |
    | neutral | it is [morning] and the man is in a park |
    | contradiction | the [woman] is outdoors |
    | contradiction | the person is wearing a [blue] [hat] |

    Held out of training are pairs of a person and an activity ("man", "playing the guitar") and
    pairs of an activity and a place. The hypothesis alone gives little away: each statement is
    entailed by some captions, contradicted by others, and left open by the rest.

    Args:
        size: how many pairs, in all splits together (about 80 % train, 10 % dev, 10 % test): a
            multiple of three, since each premise occurs in three pairs of the same split.
        seed: another seed gives other pairs of the same kind.

    Returns:
        A data set with `decisive` words of the hypotheses and equally many pairs of each label.

    Raises:
        ConfigError: if `size` is too small, not a multiple of three, or more than the grammar can
            generate.
    """
    if size % 3:
        raise ConfigError(
            f"size is {size}, but each premise of demo-nli occurs in three pairs",
            hint=f"Use {size - size % 3} or {size - size % 3 + 3}",
        )
    rng = random.Random(seed)
    seen: set[str] = set()
    vocabulary: set[str] = set()
    splits = {}
    for name, count in split_sizes(size, per_premise=3).items():
        texts: list[tuple[str, str]] = []
        labels: list[int] = []
        decisive: list[tuple[int, ...]] = []
        for _ in range(count):
            premise, hypotheses = first(
                (premise, hypotheses)
                for premise, hypotheses in _caption_pairs(rng, training=name == "train")
                if premise.text not in seen
                and (
                    name == "train"
                    or vocabulary.issuperset(
                        word
                        for text in (premise.text, *(each.text for each in hypotheses))
                        for word in text.split()
                    )
                )
            )
            seen.add(premise.text)
            for label in shuffled(rng, range(3)):
                texts.append((premise.text, hypotheses[label].text))
                labels.append(label)
                decisive.append(hypotheses[label].decisive)
        if name == "train":
            vocabulary.update(word for pair in texts for text in pair for word in text.split())
        splits[name] = Split(texts, np.array(labels, np.int32), decisive)
    return Dataset("demo-nli", splits, OBJECTIVE)


def _recipe(encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    return recipes.generated(encoder, OBJECTIVE, PAIR)


def _caption_pairs(
    rng: random.Random, *, training: bool
) -> Iterator[tuple[Caption, list[Hypothesis]]]:
    """Captions with a hypothesis per label; those for training have no held-out pair anywhere."""
    for _ in range(TRIES):
        premise = caption(rng)
        if premise.is_unseen_combination == training:
            continue
        hypotheses = []
        for label in range(3):
            # A caption that says little may leave nothing to contradict: then it is dropped.
            candidates = (hypothesis(rng, premise, label) for _ in range(60))
            for candidate in candidates:
                if candidate and not (training and has_held_out(candidate.pairs)):
                    hypotheses.append(candidate)
                    break
        if len(hypotheses) == 3:
            yield premise, hypotheses


register_dataset(
    Entry(
        "demo-nli",
        "generated picture captions with a statement each",
        demo_nli,
        _recipe,
        OPTIONS,
        vectors=False,
        reads_files=False,
    )
)
