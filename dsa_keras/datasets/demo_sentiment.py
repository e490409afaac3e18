"""`demo-sentiment`: generated film reviews, nothing to download, every label certain.

`demo_splits` says what is held out of training.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.demo_grammar import shuffled
from dsa_keras.datasets.demo_reviews import KINDS, Review, review
from dsa_keras.datasets.demo_splits import OPTIONS, TRIES, first, split_sizes
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.encoders import Encoder
from dsa_keras.inputs import SENTENCE
from dsa_keras.objectives.classification import Classification

OBJECTIVE = Classification(class_names=("negative", "positive"))


def demo_sentiment(*, size: int = 6000, seed: int = 0) -> Dataset:
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
    for name, count in split_sizes(size).items():
        plan = [(index % 2, KINDS[index // 2 % len(KINDS)]) for index in range(count)]
        plan = shuffled(rng, plan)
        reviews: list[Review] = []
        for label, kind in plan:
            candidates = (review(rng, bool(label), kind) for _ in range(TRIES))
            found = first(
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
    return Dataset("demo-sentiment", splits, OBJECTIVE)


def _recipe(encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    return recipes.generated(encoder, OBJECTIVE, SENTENCE)


register_dataset(
    Entry(
        "demo-sentiment",
        "generated film reviews, negative or positive",
        demo_sentiment,
        _recipe,
        OPTIONS,
        vectors=False,
        reads_files=False,
    )
)
