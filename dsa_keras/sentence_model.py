"""A trained model as people use it: sentences in, vectors or answers out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import tensorflow as tf

from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.data.word_lookup import Sentences
from dsa_keras.datasets import Split
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import SENTENCE, Inputs, Text
from dsa_keras.inspection import Explanation, explain
from dsa_keras.keras_private import float32_policy
from dsa_keras.models import Network
from dsa_keras.objectives import Answer, Evaluation, Objective
from dsa_keras.objectives.reading import Reading
from dsa_keras.progress import progress_bar
from dsa_keras.runs import Run, RunConfig
from dsa_keras.text_encoder import TextEncoder

STREAM_CHUNK = 8192
"""Sentences of a stream that are held in memory at a time."""


class SentenceModel:
    """A trained network together with its words; made by `dsa_keras.load`.

    Args:
        text_encoder: from texts to vectors.
        config: of the run it comes from.
    """

    def __init__(self, text_encoder: TextEncoder, config: RunConfig) -> None:
        self.text_encoder, self.config = text_encoder, config
        self.network: Network = text_encoder.network
        self.inputs: Inputs = config.model.inputs
        self.objective: Objective = config.model.objective
        self.dimension: int = self.network.units

        def numbers(vectors: Any) -> Any:
            parts = tf.unstack(vectors, self.inputs.count, axis=1)
            features = self.network.features(parts)
            return self.objective.numbers(self.network.head(features, training=False))

        spec = tf.TensorSpec([None, self.inputs.count, self.dimension], tf.float32)
        self._numbers = tf.function(numbers, input_signature=[spec], autograph=False)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows."""
        return self.text_encoder.vocabulary

    @property
    def tokenizer(self) -> str:
        """Name of the tokeniser that the model was trained with."""
        return self.text_encoder.tokenizer

    @overload
    def encode(
        self,
        sentences: str | Sequence[str] | np.ndarray,
        batch_size: int = ...,
        show_progress_bar: bool = ...,
        normalize_embeddings: bool = ...,
    ) -> np.ndarray: ...
    @overload
    def encode(
        self,
        sentences: Iterator[str],
        batch_size: int = ...,
        show_progress_bar: bool = ...,
        normalize_embeddings: bool = ...,
    ) -> Iterator[np.ndarray]: ...
    def encode(
        self,
        sentences: str | Sequence[str] | np.ndarray | Iterator[str],
        batch_size: int = 256,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
    ) -> np.ndarray | Iterator[np.ndarray]:
        """Turns sentences into vectors.

        Args:
            sentences: one sentence, a sequence of them, or an iterator for streams of any length.
            batch_size: sentences that are encoded at a time, at most.
            show_progress_bar: whether to show a bar on a terminal.
            normalize_embeddings: whether every vector is scaled to length 1 (a zero vector, of a
                sentence without words, stays zero).

        Returns:
            float32: `(units,)` for one sentence, `(sentences, units)` for a sequence. For an
            iterator, an iterator that yields one vector per sentence and holds some thousand
            sentences at a time.

        Example:
        ```python
        vectors = model.encode(["a gripping , funny film", "dull"], normalize_embeddings=True)
        ```
        """
        _check_batch_size(batch_size)
        if isinstance(sentences, str):
            return self.encode([sentences], batch_size, False, normalize_embeddings)[0]
        if isinstance(sentences, Iterator):
            return self._stream(sentences, batch_size, show_progress_bar, normalize_embeddings)
        unique, index = SENTENCE.distinct(SENTENCE.checked(sentences))
        vectors = self.text_encoder.vectors(unique, batch_size, show_progress_bar)
        if normalize_embeddings:
            vectors = _normalized(vectors)
        return vectors[index]

    def numbers(
        self, texts: Iterable[Text], batch_size: int = 256, show_progress_bar: bool = False
    ) -> np.ndarray:
        """What the model says in numbers: of a classifier the probability of every class.

        Args:
            texts: sentences, or (premise, hypothesis) pairs for a model of pairs.
            batch_size: sentences that are encoded at a time, at most.
            show_progress_bar: whether to show a bar on a terminal.

        Returns:
            float32: `(texts, classes)` of a classifier, `(texts,)` of a regression.
        """
        _check_batch_size(batch_size)
        found, index = self._looked_up(self.inputs.checked(texts))
        return self._numbers_of(found, index, batch_size, show_progress_bar)

    def _looked_up(self, texts: Sequence[Text]) -> tuple[Sentences, np.ndarray]:
        """The distinct sentences of texts, and which of them each text has."""
        unique, index = self.inputs.distinct(texts)
        return self.text_encoder.word_ids(unique), index.reshape(-1, self.inputs.count)

    def _numbers_of(
        self, found: Sentences, index: np.ndarray, batch_size: int, show_progress_bar: bool
    ) -> np.ndarray:
        vectors = self.text_encoder.vectors_of(found, batch_size, show_progress_bar)
        starts = range(0, max(len(index), 1), batch_size)
        parts = [
            self._numbers(tf.constant(vectors[index[start : start + batch_size]])).numpy()
            for start in starts
        ]
        return np.concatenate(parts)

    @overload
    def predict(  # type: ignore[overload-overlap]
        self, texts: str | tuple[str, str], batch_size: int = ..., show_progress_bar: bool = ...
    ) -> Answer: ...
    @overload
    def predict(
        self, texts: Iterable[Text], batch_size: int = ..., show_progress_bar: bool = ...
    ) -> list[Answer]: ...
    def predict(
        self,
        texts: Text | Iterable[Text],
        batch_size: int = 256,
        show_progress_bar: bool = False,
    ) -> Any:
        """Answers: of a classifier a `Prediction` with the label and all probabilities.

        The `reading` of an answer says how much of the text the model could read: of a text
        without a word that it knows (`reading.known_words == 0`) the answer says nothing, and of
        one that was cut (`reading.cut`) it is about the first 10,000 words.

        Args:
            texts: one text, or many in a list, an array or an iterator. A text is a sentence, or a
                (premise, hypothesis) tuple for a model of pairs.
            batch_size: sentences that are encoded at a time, at most.
            show_progress_bar: whether to show a bar on a terminal.

        Returns:
            One answer for one text, a list of them for many.

        Example:
        ```python
        model.predict("a gripping , funny film").label
        ```
        """
        if self.inputs.is_one(texts):
            return self.predict([texts], batch_size)[0]  # type: ignore[list-item]
        _check_batch_size(batch_size)
        found, index = self._looked_up(self.inputs.checked(texts))
        numbers = self._numbers_of(found, index, batch_size, show_progress_bar)
        answers = zip(self.objective.answers(numbers), self._readings(found, index), strict=True)
        return [answer.read(reading) for answer, reading in answers]

    def _readings(self, found: Sentences, index: np.ndarray) -> Iterator[Reading]:
        cut = np.zeros(len(found), bool) if found.cut is None else found.cut
        columns = (values[index].tolist() for values in (found.lengths, found.known, cut))
        for counts, known, shortened in zip(*columns, strict=True):
            yield Reading(self.inputs.names, tuple(counts), tuple(known), tuple(shortened))

    def similarity(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Cosine of every vector of `first` with every one of `second`: `(first, second)`."""
        rows, columns = np.atleast_2d(first), np.atleast_2d(second)
        if rows.shape[-1] != columns.shape[-1]:
            raise ConfigError(
                f"the vectors have different sizes, {rows.shape[-1]} and {columns.shape[-1]}",
                hint="Encode both with the same model",
            )
        return _normalized(rows) @ _normalized(columns).T

    def evaluate(
        self, split: Split, batch_size: int = 256, show_progress_bar: bool = False
    ) -> Evaluation:
        """Compares the model's answers with the targets of a split."""
        numbers = self.numbers(split.texts, batch_size, show_progress_bar)
        return self.objective.evaluate(numbers, split.targets)

    @overload
    def explain(  # type: ignore[overload-overlap]
        self, texts: str | tuple[str, str]
    ) -> Explanation: ...
    @overload
    def explain(self, texts: Iterable[Text]) -> list[Explanation]: ...
    def explain(self, texts: Text | Iterable[Text]) -> Any:
        """Answers together with the weights that each attention gave to each word.

        Args:
            texts: one text or many, as of `predict`.

        Raises:
            ConfigError: if the encoder has no attention.

        Example:
        ```python
        one = model.explain("not a dull moment")
        one.traces["sentence"].weights[-1]  # (attentions, words) of the last iteration
        ```
        """
        if self.inputs.is_one(texts):
            return explain(self, [texts])[0]  # type: ignore[list-item]
        return explain(self, self.inputs.checked(texts))

    def _stream(
        self, sentences: Iterator[str], batch_size: int, show: bool, normalize: bool
    ) -> Iterator[np.ndarray]:
        with progress_bar(None, "encoding", show=show, unit=" sentences") as bar:
            while chunk := list(itertools.islice(sentences, STREAM_CHUNK)):
                yield from self.encode(chunk, batch_size, False, normalize)
                bar.update(len(chunk))


def load(run_dir: str | os.PathLike[str]) -> SentenceModel:
    """Loads the best model of a run folder.

    The model is built from this package's code; the folder only has settings, words and numbers in
    it, so loading one from elsewhere runs no code of its author. An encoder of your own must have
    been registered before. It computes in float32, whatever Keras's global policy is.

    Raises:
        RunError: if the folder or a file of it is missing, damaged or does not fit.
    """
    run = Run(run_dir)
    config = run.config()
    vocabulary = run.vocabulary(config)
    with float32_policy():
        network = run.load_network(config)
    training = config.training
    encoder = TextEncoder(training.tokenizer, vocabulary, network, training.lowercase)
    return SentenceModel(encoder, config)


def _normalized(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1. Received: {batch_size}")
