"""A data set as the numbers that train: words, vectors, and the ids of every sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsa_keras.config import Recipe, TrainingConfig
from dsa_keras.data.batches import Prepared
from dsa_keras.data.vectors import load_vectors
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.data.word_lookup import TokenizedSentences
from dsa_keras.datasets import Dataset
from dsa_keras.errors import DataError

_TRAINED_ON = ("train", "dev")


@dataclass(frozen=True)
class TaskData:
    """A data set as numbers. Trainings that differ in the network only can share one.

    Attributes:
        vocabulary: the words.
        matrix: their vectors.
        vectors: the files of the vectors, and what was found in them.
        splits: `train` and `dev`.
    """

    vocabulary: Vocabulary
    matrix: np.ndarray
    vectors: Mapping[str, Any]
    splits: Mapping[str, Prepared]


def prepare_task(
    dataset: Dataset,
    recipe: Recipe,
    vectors: Sequence[str | Path] = (),
    *,
    show_progress: bool = True,
    dimension: int | None = None,
) -> TaskData:
    """Finds the words and their vectors, and makes numbers of `train` and `dev`.

    With vectors from files the words of all splits get theirs, as InferSent does. A word whose
    vector must be learnt, or is random, is of no use unless training has it.

    Args:
        dataset: with the splits `train` and `dev`.
        recipe: of which `embedding_dim`, `tokenizer`, `lowercase`, `oov_range` and `seed` count.
        vectors: files of word vectors. Without any, words get random vectors.
        show_progress: whether to show a bar on a terminal.
        dimension: what the user said the vectors have; None takes what they have.
    """
    check_splits(dataset)
    training = recipe.training
    words = _Words(dataset, training, list(dataset.splits) if vectors else _TRAINED_ON)
    counts = words.counts(list(dataset.splits) if vectors else ["train"])
    vocabulary = Vocabulary.from_counts(counts)
    splits = {name: words.prepared(name, vocabulary) for name in _TRAINED_ON}
    if vectors:
        found = load_vectors(
            vectors,
            vocabulary,
            dimension=dimension,
            oov_range=training.oov_range,
            seed=training.seed,
            show_progress=show_progress,
        )
        covered = found.token_coverage([counts.get(word, 0) for word in vocabulary])
        about = {"files": [str(path) for path in vectors], "coverage": found.coverage}
        about |= {"token_coverage": covered, "report": found.report}
        return TaskData(vocabulary, found.matrix, about, splits)
    random = np.random.default_rng([training.seed, len(vocabulary)])
    bound, shape = training.oov_range, (len(vocabulary), recipe.model.embedding_dim)
    matrix = random.uniform(-bound, bound, shape).astype(np.float32)
    matrix[0] = 0
    return TaskData(vocabulary, matrix, {"files": []}, splits)


def check_splits(dataset: Dataset) -> None:
    """Raises DataError unless there is something to train on and something to choose by."""
    for split in _TRAINED_ON:
        if split not in dataset.splits or not len(dataset[split]):
            raise DataError(
                f"the data has no {split} examples",
                where=dataset.name,
                hint="The weights kept are those of the epoch that is best on dev, so training "
                "needs both: give a file for each, a split column, or fractions",
            )


def prepare_splits(
    dataset: Dataset, training: TrainingConfig, vocabulary: Vocabulary
) -> dict[str, Prepared]:
    """Makes numbers of `train` and `dev` with a vocabulary that is known."""
    check_splits(dataset)
    words = _Words(dataset, training, _TRAINED_ON)
    return {name: words.prepared(name, vocabulary) for name in _TRAINED_ON}


class _Words:
    """The words of a data set: each distinct sentence of all splits is tokenised once."""

    def __init__(self, dataset: Dataset, training: TrainingConfig, splits: Sequence[str]) -> None:
        self.dataset = dataset
        texts = [text for name in splits for text in dataset[name].texts]
        sentences, _ = dataset.inputs.distinct(texts)
        self._place = {sentence: number for number, sentence in enumerate(sentences)}
        self._tokenized = TokenizedSentences(sentences, training.tokenizer, training.lowercase)

    def counts(self, splits: Sequence[str]) -> Mapping[str, int]:
        """How often each word occurs in the distinct sentences of some splits."""
        texts = [text for name in splits for text in self.dataset[name].texts]
        sentences, _ = self.dataset.inputs.distinct(texts)
        return self._tokenized.counts([self._place[one] for one in sentences])

    def prepared(self, name: str, vocabulary: Vocabulary) -> Prepared:
        """A split as numbers."""
        split = self.dataset[name]
        sentences, index = self.dataset.inputs.distinct(split.texts)
        chosen = [self._place[one] for one in sentences]
        return Prepared(self._tokenized.ids(vocabulary).chosen(chosen), index, split.targets)


def fingerprint(prepared: Mapping[str, Prepared]) -> str:
    """Tells whether the data of a resumed run is still the same."""
    digest = hashlib.sha256()
    for split in prepared.values():
        for array in (split.sentences.ids, split.sentences.offsets, split.index, split.targets):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
