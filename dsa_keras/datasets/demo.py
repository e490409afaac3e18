"""Generated data sets, `demo-sentiment` and `demo-nli`: nothing to download, every label certain.

Both come from small grammars (`demo_reviews`, `demo_captions`), which decide the label and know
which words decided it, so that attention can be scored against `Split.decisive`. One pair of words
in six is held out (`demo_grammar.is_held_out`, a checksum of the two words): a held-out pair never
meets in a sentence of the training split, and every review and every premise of the dev and test
splits is built around at least one. Single words are no obstacle: each word of dev and test occurs
in train.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.demo_captions import Caption, Hypothesis, caption, hypothesis
from dsa_keras.datasets.demo_grammar import has_held_out, shuffled
from dsa_keras.datasets.demo_reviews import KINDS, Review, review
from dsa_keras.datasets.entry import Entry, Option
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.encoders import Encoder
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import PAIR, SENTENCE
from dsa_keras.objectives.classification import Classification

T = TypeVar("T")

SENTIMENT = Classification(class_names=("negative", "positive"))
NLI = Classification(class_names=("entailment", "neutral", "contradiction"))

MIN_SIZE = 150
"""The fewest examples; below, training would lack words that the test needs."""

_TRIES = 20_000


def demo_sentiment(_: object = None, *, size: int = 6000, seed: int = 0) -> Dataset:
    """Film reviews of one line, negative or positive.

    Negation, double negation, intensifiers, comparison, agreement and contrast, with the words that
    decide in brackets:

    | label | review |
    |---|---|
    | positive | [not] a [dull] moment |
    | positive | a film [not] [without] [charm] |
    | positive | the plot is not only [clever] but also [moving] |
    | negative | good cast [but] a truly [boring] plot |
    | negative | [although] the ending is never dull , the script is [far] [from] [gripping] |
    | negative | the score is far [less] [memorable] than i expected , as usual |

    Held out of training are pairs of a value word and its topic ("boring", "plot"), pairs of an
    operator and a value word ("not", "dull"), and combinations of a contrast with the pattern of
    its main clause. A bag of words cannot solve it: more than half of the reviews turn on a
    negation or on which of two clauses counts.

    Args:
        size: how many reviews, in all splits together: 80 % train, 10 % dev, 10 % test.
        seed: another seed gives other reviews of the same kind.

    Returns:
        A data set with `decisive` words and as many negative as positive reviews in each split.

    Raises:
        ConfigError: if `size` is too small, or more than the grammar can generate.
    """
    rng = random.Random(seed)
    seen: set[str] = set()
    vocabulary: set[str] = set()
    splits = {}
    for name, count in _split_sizes(size).items():
        plan = [(index % 2, KINDS[index // 2 % len(KINDS)]) for index in range(count)]
        plan = shuffled(rng, plan)
        reviews: list[Review] = []
        for label, kind in plan:
            candidates = (review(rng, bool(label), kind) for _ in range(_TRIES))
            found = _first(
                candidate
                for candidate in candidates
                if candidate.text not in seen
                and (
                    candidate.fits_training
                    if name == "train"
                    else candidate.is_unseen_combination
                    and vocabulary.issuperset(candidate.text.split())
                )
            )
            seen.add(found.text)
            reviews.append(found)
        if name == "train":
            vocabulary.update(word for found in reviews for word in found.text.split())
        splits[name] = Split(
            texts=[found.text for found in reviews],
            targets=np.array([label for label, _ in plan], np.int32),
            decisive=[found.decisive for found in reviews],
        )
    return Dataset("demo-sentiment", splits, SENTIMENT)


def demo_nli(_: object = None, *, size: int = 9000, seed: int = 0) -> Dataset:
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
    for name, count in _split_sizes(size, per_premise=3).items():
        texts: list[tuple[str, str]] = []
        labels: list[int] = []
        decisive: list[tuple[int, ...]] = []
        for _ in range(count):
            premise, hypotheses = _first(
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
    return Dataset("demo-nli", splits, NLI)


def _caption_pairs(
    rng: random.Random, *, training: bool
) -> Iterator[tuple[Caption, list[Hypothesis]]]:
    """Captions with a hypothesis per label; those for training have no held-out pair anywhere."""
    for _ in range(_TRIES):
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


def _first(candidates: Iterator[T]) -> T:
    for candidate in candidates:
        return candidate
    raise ConfigError(
        "the demo grammar ran out of new sentences", hint="Ask for fewer examples (a smaller size)"
    )


def _split_sizes(size: int, per_premise: int = 1) -> dict[str, int]:
    if size < MIN_SIZE:
        raise ConfigError(
            f"size is {size}, too small for train, dev and test",
            hint=f"Ask for at least {MIN_SIZE} examples",
        )
    count = size // per_premise
    tenth = count // 10
    return {"train": count - 2 * tenth, "dev": tenth, "test": tenth}


def _sentiment_recipe(encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    return recipes.generated(encoder, SENTIMENT, SENTENCE)


def _nli_recipe(encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    return recipes.generated(encoder, NLI, PAIR)


_OPTIONS = (
    Option("--size", "size", "number of examples", kind=int, metavar="N"),
    Option("--data-seed", "seed", "another seed generates other examples", kind=int, metavar="N"),
)

register_dataset(
    Entry(
        "demo-sentiment",
        "generated film reviews, negative or positive",
        demo_sentiment,
        _sentiment_recipe,
        _OPTIONS,
        vectors=False,
    )
)
register_dataset(
    Entry(
        "demo-nli",
        "generated picture captions with a statement each",
        demo_nli,
        _nli_recipe,
        _OPTIONS,
        vectors=False,
    )
)
