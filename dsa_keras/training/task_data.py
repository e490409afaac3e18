"""A data set as the numbers that train: words, vectors, and the ids of every sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data.batches import Prepared, count_words, distinct, prepare
from dsa_keras.data.dataset import Dataset
from dsa_keras.data.vectors import load_vectors
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import DataError


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
    model: ModelConfig,
    training: TrainingConfig,
    vectors: Sequence[str | Path] = (),
    *,
    show_progress: bool = True,
) -> TaskData:
    """Finds the words and their vectors, and makes numbers of `train` and `dev`.

    What counts of the configs is `embedding_dim`, `tokenizer`, `oov_range` and `seed`.
    """
    check_splits(dataset)
    words = _words(dataset, model, training, vectors, show_progress)
    return TaskData(*words, prepare_splits(dataset, training, words[0]))


def check_splits(dataset: Dataset) -> None:
    """Raises DataError unless there is something to train on and something to choose by."""
    for split in ("train", "dev"):
        if split not in dataset.splits or not len(dataset[split]):
            raise DataError(
                f"the data has no {split} examples",
                where=dataset.name,
                hint="The weights kept are those with the best dev accuracy, so training needs "
                "both: give a file for each, a split column, or fractions",
            )


def _words(
    dataset: Dataset,
    model: ModelConfig,
    training: TrainingConfig,
    paths: Sequence[str | Path],
    show_progress: bool,
) -> tuple[Vocabulary, np.ndarray, dict[str, Any]]:
    """The vocabulary, its vectors, and what to say about them.

    With vectors from files the words of all splits get theirs, as InferSent does. A word whose
    vector must be learnt, or is random, is of no use unless training has it.
    """
    splits = dataset.splits.values() if paths else [dataset["train"]]
    counts = count_words(
        distinct([text for split in splits for text in split.texts])[0], training.tokenizer
    )
    vocabulary = Vocabulary.from_counts(counts)
    if paths:
        vectors = load_vectors(
            paths,
            vocabulary,
            oov_range=training.oov_range,
            seed=training.seed,
            show_progress=show_progress,
        )
        covered = vectors.token_coverage([counts.get(word, 0) for word in vocabulary])
        found = {"coverage": vectors.coverage, "token_coverage": covered, "report": vectors.report}
        return vocabulary, vectors.matrix, {"files": [str(path) for path in paths], **found}
    random = np.random.default_rng([training.seed, len(vocabulary)])
    bound, shape = training.oov_range, (len(vocabulary), model.embedding_dim)
    matrix = random.uniform(-bound, bound, shape).astype(np.float32)
    matrix[0] = 0
    return vocabulary, matrix, {"files": []}


def prepare_splits(
    dataset: Dataset, training: TrainingConfig, vocabulary: Vocabulary
) -> dict[str, Prepared]:
    """Makes numbers of `train` and `dev` with a vocabulary that is known."""
    return {
        name: prepare(dataset[name], training.tokenizer, vocabulary) for name in ("train", "dev")
    }


def fingerprint(prepared: Mapping[str, Prepared]) -> str:
    """Tells whether the data of a resumed run is still the same."""
    digest = hashlib.sha256()
    for split in prepared.values():
        for array in (split.sentences.ids, split.sentences.offsets, split.index, split.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
