"""The numbers behind the figures, in plain NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsa_keras.inspection.trace import Trace


@dataclass(frozen=True)
class Projection:
    """Vectors in the plane of their two largest principal components.

    Attributes:
        points: `(vectors, 2)`.
        explained: share of the variance on each of the two axes.
        spread: mean squared distance of a vector from the mean vector.
    """

    points: np.ndarray
    explained: tuple[float, float]
    spread: float


def principal_components(vectors: np.ndarray) -> Projection:
    """PCA to two dimensions, by the singular value decomposition of the centred vectors.

    The sign of an axis is free; here the entry of its direction with the largest size is positive,
    so that the same vectors give the same picture.
    """
    centred = np.asarray(vectors, float) - np.mean(vectors, axis=0, dtype=float)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    points, explained = np.zeros((len(centred), 2)), [0.0, 0.0]
    total = float(np.sum(sizes**2))
    for axis in range(min(2, len(sizes))):
        direction = directions[axis]
        direction = direction * np.sign(direction[np.abs(direction).argmax()])
        points[:, axis] = centred @ direction
        explained[axis] = float(sizes[axis] ** 2 / total) if total > 0 else 0.0
    return Projection(points, (explained[0], explained[1]), total / max(len(centred), 1))


def entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy in nats over the last axis; 0 log 0 is 0."""
    weights = np.asarray(weights, float)
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)


def relative_entropy_of(one: Trace) -> np.ndarray:
    """Entropy per iteration and attention, as a share of that of uniform weights.

    Only for sentences of two words or more: a single word always has all the weight.
    """
    return entropy(one.weights) / np.log(len(one.words))


def mean_entropy(traces: Sequence[Trace]) -> np.ndarray:
    """Mean of `relative_entropy_of` over the sentences with two words or more.

    Returns:
        `(iterations, attentions)`; 1 is uniform, 0 is all weight on one word.
    """
    long_enough = [one for one in traces if len(one.words) > 1]
    return np.mean([relative_entropy_of(one) for one in long_enough], axis=0)


def disagreement(weights: np.ndarray) -> float:
    """How much attentions differ: mean total variation distance over all pairs of them.

    Args:
        weights: `(attentions, words)`.

    Returns:
        0 if all attend to the same, 1 if no two share a word; 0 for a single attention.
    """
    first, second = np.triu_indices(len(weights), k=1)
    if not len(first):
        return 0.0
    return float(np.mean(np.abs(weights[first] - weights[second]).sum(axis=-1) / 2))


def telling_sentences(traces: Sequence[Trace], count: int, min_words: int = 6) -> list[int]:
    """Numbers of the sentences to show, the most telling first.

    Those where the attentions differ most; with a single attention, those where it is sharpest.
    Sentences of at least `min_words` words go before shorter ones, and sentences that are unlike
    those already chosen go before those that share most of their words with one.
    """
    values = []
    for number, one in enumerate(traces):
        if not one.words:
            continue
        last = one.weights[-1]
        if len(last) > 1:
            value = disagreement(last)
        else:
            value = 1 - float(relative_entropy_of(one)[-1, 0]) if len(one.words) > 1 else 0.0
        values.append((len(one.words) < min_words, -value, number))
    ranked = [number for _, _, number in sorted(values)]
    chosen: list[int] = []
    for number in ranked:
        if len(chosen) == count:
            return chosen
        words = set(traces[number].words)
        if all(_overlap(words, set(traces[other].words)) <= 1 / 3 for other in chosen):
            chosen.append(number)
    texts = {traces[number].words for number in chosen}
    for number in ranked:
        if len(chosen) < count and traces[number].words not in texts:
            texts.add(traces[number].words)
            chosen.append(number)
    return chosen


def _overlap(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second)


@dataclass(frozen=True)
class WordWeight:
    """What an attention gives to a word, on average over its occurrences.

    Attributes:
        word: the word.
        count: how often it occurs.
        weight: mean weight.
        lift: mean of weight times the number of words of the sentence: 1 is the uniform weight.
    """

    word: str
    count: int
    weight: float
    lift: float


def top_words(traces: Sequence[Trace], count: int, min_count: int) -> list[list[WordWeight]]:
    """For each attention, the words with the largest lift in the last iteration.

    A word that occurs less often than `min_count` is left out; ties are in alphabetical order.
    """
    occurrences = Counter(word for one in traces for word in one.words)
    attentions = traces[0].weights.shape[1] if traces else 0
    weights: dict[str, np.ndarray] = {
        word: np.zeros((2, attentions)) for word, n in occurrences.items() if n >= min_count
    }
    for one in traces:
        for word, column in zip(one.words, one.weights[-1].T.astype(float), strict=True):
            if word in weights:
                weights[word] += np.stack([column, column * len(one.words)])
    ranking = []
    for attention in range(attentions):
        words = [
            WordWeight(word, occurrences[word], *(sums[:, attention] / occurrences[word]).tolist())
            for word, sums in weights.items()
        ]
        ranking.append(sorted(words, key=lambda one: (-one.lift, one.word))[:count])
    return ranking


@dataclass(frozen=True)
class AttentionScore:
    """Which share of the weight falls on the words that decide the label.

    Attributes:
        uniform: the share if all words weighed the same, mean over the examples.
        by_iteration: `(iterations, attentions)`, mean over the examples.
        error: standard error of the last iteration's means, `(attentions,)`.
        mean: of all attentions in the last iteration.
        mean_error: standard error of `mean`.
        examples: how many examples were scored.
        left_out: examples whose words are not those the decisive ones were counted in.
    """

    uniform: float
    by_iteration: np.ndarray
    error: np.ndarray
    mean: float
    mean_error: float
    examples: int
    left_out: int


def attention_score(
    traces: Sequence[Trace], sentences: Sequence[str], decisive: Sequence[tuple[int, ...]]
) -> AttentionScore | None:
    """Scores the attention against the decisive words.

    Args:
        traces: of the sentences.
        sentences: the texts, whose white-space words `decisive` counts.
        decisive: for each sentence the indices of the words that decide its label.

    Returns:
        None if no sentence can be scored.
    """
    shares, uniform = [], []
    for one, sentence, indices in zip(traces, sentences, decisive, strict=True):
        # A tokeniser that splits otherwise would shift the indices.
        if not indices or len(one.words) != len(sentence.split()):
            continue
        shares.append(one.weights[:, :, list(indices)].sum(axis=-1, dtype=float))
        uniform.append(len(set(indices)) / len(one.words))
    if not shares:
        return None
    values = np.stack(shares)
    last = values[:, -1]
    return AttentionScore(
        uniform=float(np.mean(uniform)),
        by_iteration=values.mean(axis=0),
        error=_standard_error(last),
        mean=float(last.mean()),
        mean_error=float(_standard_error(last.mean(axis=-1))),
        examples=len(shares),
        left_out=len(traces) - len(shares),
    )


def _standard_error(values: np.ndarray) -> np.ndarray:
    if len(values) < 2:
        return np.zeros(values.shape[1:])
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))
