"""A trained model as people use it: sentences in, vectors or labels out.

Sentences are tokenised and looked up by the operations that are exported too. Each distinct
sentence is encoded once, sorted by length so that a batch has hardly any padding; what depends on a
word alone is computed once for all sentences with that word (`dsa_keras.models.word_tables`); and
what comes out is in the order of what came in. Nothing is changed by a call, so one model serves
many threads.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.data.batches import Sentences, WordLookup, distinct
from dsa_keras.data.dataset import Split, Text
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import ConfigError
from dsa_keras.models import TabledEncoder, has_word_tables
from dsa_keras.progress import progress_bar
from dsa_keras.training.evaluation import Evaluation, confusion_matrix
from dsa_keras.training.run import Run, RunConfig

if TYPE_CHECKING:
    from dsa_keras.inspection import Explanation

STREAM_CHUNK = 8192
"""Sentences of a stream that are held in memory at a time."""

_MAX_POSITIONS = 2048
_WINDOW = 65_536
_WORTH_TABLES = 2048


@dataclass(frozen=True)
class Prediction:
    """What the model says about one text.

    Attributes:
        label: name of the most probable class.
        probability: of that class.
        probabilities: of every class by name.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


class SentenceModel:
    """A classifier together with its words; made by `dsa_keras.load`.

    Args:
        classifier: from `build_classifier` or `build_pair_classifier`.
        vocabulary: the words it knows.
        config: of the run it comes from.
    """

    def __init__(self, classifier: keras.Model, vocabulary: Vocabulary, config: RunConfig) -> None:
        self.classifier, self.vocabulary, self.config = classifier, vocabulary, config
        encoder, head = classifier.get_layer("encoder"), classifier.get_layer("head")
        self._look_up = WordLookup(config.training.tokenizer, vocabulary)
        self.dimension: int = encoder.output_shape[-1]
        self._encoder = tf.function(
            lambda ids: encoder(ids, training=False),
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

        def probabilities(vectors: Any) -> Any:
            if config.is_pair:
                h, p = vectors[:, 1], vectors[:, 0]
                vectors = classifier.get_layer("matching")([h, p])
            return tf.nn.softmax(head(vectors, training=False))

        shape = [None, 2, self.dimension] if config.is_pair else [None, self.dimension]
        spec = tf.TensorSpec(shape, tf.float32)
        self._head = tf.function(probabilities, input_signature=[spec], autograph=False)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probabilities."""
        return self.config.class_names

    @property
    def is_pair(self) -> bool:
        """Whether `predict` takes pairs of sentences."""
        return self.config.is_pair

    @property
    def tokenizer(self) -> str:
        """Name of the tokeniser that the model was trained with."""
        return self.config.training.tokenizer

    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
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
        sentences: str | Sequence[str] | Iterator[str],
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
        _check_sentences(sentences)
        unique, index = distinct(sentences)
        vectors = self._vectors(unique, batch_size, show_progress_bar)
        if normalize_embeddings:
            vectors = _normalized(vectors)
        return vectors[index]

    def probabilities(
        self, texts: Sequence[Text], batch_size: int = 256, show_progress_bar: bool = False
    ) -> np.ndarray:
        """The probability of every class: `(texts, classes)`, float32.

        Args:
            texts: sentences, or (premise, hypothesis) pairs for a model of pairs.
            batch_size: sentences that are encoded at a time, at most.
            show_progress_bar: whether to show a bar on a terminal.
        """
        _check_batch_size(batch_size)
        self._check_texts(texts)
        unique, index = distinct(texts)
        vectors = self._vectors(unique, batch_size, show_progress_bar)
        parts = [
            self._head(tf.constant(vectors[index[start : start + batch_size]])).numpy()
            for start in range(0, len(index), batch_size)
        ]
        return np.concatenate([np.zeros((0, len(self.class_names)), np.float32), *parts])

    def predict(
        self, texts: Sequence[Text], batch_size: int = 256, show_progress_bar: bool = False
    ) -> list[Prediction]:
        """Labels with probabilities, one `Prediction` per text; see `probabilities`.

        Example:
        ```python
        model.predict(["a gripping , funny film"])[0].label
        ```
        """
        predictions = []
        for row in self.probabilities(texts, batch_size, show_progress_bar):
            best = int(row.argmax())
            by_name = dict(zip(self.class_names, map(float, row), strict=True))
            predictions.append(Prediction(self.class_names[best], float(row[best]), by_name))
        return predictions

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
        """Compares the model's answers with the labels of a split."""
        predicted = self.probabilities(split.texts, batch_size, show_progress_bar).argmax(-1)
        classes = len(self.class_names)
        return Evaluation(confusion_matrix(split.labels, predicted, classes), self.class_names)

    def explain(self, texts: Sequence[Text]) -> list[Explanation]:
        """Predictions together with the weights that each attention gave to each word.

        Args:
            texts: sentences, or (premise, hypothesis) pairs for a model of pairs.

        Raises:
            ConfigError: if the encoder has no attention.

        Example:
        ```python
        [one] = model.explain(["not a dull moment"])
        one.traces["sentence"].weights[-1]  # (attentions, words) of the last iteration
        ```
        """
        from dsa_keras.inspection import explain

        return explain(self, texts)

    def _stream(
        self, sentences: Iterator[str], batch_size: int, show: bool, normalize: bool
    ) -> Iterator[np.ndarray]:
        with progress_bar(None, "encoding", show=show, unit=" sentences") as bar:
            while chunk := list(itertools.islice(sentences, STREAM_CHUNK)):
                yield from self.encode(chunk, batch_size, False, normalize)
                bar.update(len(chunk))

    def _vectors(self, sentences: Sequence[str], batch_size: int, show: bool) -> np.ndarray:
        words = self._look_up(sentences)
        vectors = np.empty((len(words), self.dimension), np.float32)
        with progress_bar(len(words), "encoding", show=show, unit=" sentences") as bar:
            for window in _windows(words):
                part, encode = self._prepared(words.chosen(window))
                for which in length_batches(part, batch_size):
                    vectors[window[which]] = encode(tf.constant(part.padded(which))).numpy()
                    bar.update(len(which))
        return vectors

    def _prepared(self, words: Sentences) -> tuple[Sentences, Callable[[Any], Any]]:
        """Sentences, and what encodes them: by tables where words occur again and again."""
        if len(words.ids) < _WORTH_TABLES or self._tabled is None:
            return words, self._encoder
        known, places = np.unique(words.ids, return_inverse=True)
        if 2 * len(known) > len(places):
            return words, self._encoder
        make, encode = self._tabled
        tables = make(tf.constant(np.concatenate([[0], known]), tf.int32))
        rows = Sentences((places + 1).astype(np.int32), words.offsets)
        return rows, lambda ids: encode(tables, ids)

    @functools.cached_property
    def _tabled(self) -> tuple[Any, Any] | None:
        encoder = self.classifier.get_layer("encoder")
        return TabledEncoder(encoder).functions() if has_word_tables(encoder) else None

    def _check_texts(self, texts: Sequence[Text]) -> None:
        if not self.is_pair:
            _check_sentences(texts)
            return
        for number, text in enumerate(texts):
            pair = isinstance(text, tuple | list) and len(text) == 2
            if not pair or not all(isinstance(sentence, str) for sentence in text):
                raise ConfigError(
                    f"text {number} is not a pair of sentences, this model needs (premise, "
                    f"hypothesis): {text!r:.60}",
                    hint="Give a list of pairs",
                )


def load(run_dir: str | os.PathLike[str]) -> SentenceModel:
    """Loads the best model of a run folder.

    The model is built from this package's code; the folder only has settings, words and numbers in
    it, so loading one from elsewhere runs no code of its author.

    Raises:
        RunError: if the folder or a file of it is missing, damaged or does not fit.
    """
    run = Run(run_dir)
    config = run.config()
    vocabulary = run.vocabulary(config)
    return SentenceModel(run.load_model(config), vocabulary, config)


def _windows(sentences: Sentences) -> Iterator[np.ndarray]:
    """Numbers of sentences, longest first, that have a table of words together.

    A window has at most 65,536 words, unless it is a single sentence. So tables have some thousand
    rows as a rule, and 32,768 at most (350 MB with the paper's sizes).
    """
    order = np.argsort(-sentences.lengths, kind="stable")
    ends = np.cumsum(sentences.lengths[order])
    start, done = 0, 0
    while start < len(order):
        end = max(start + 1, int(np.searchsorted(ends, done + _WINDOW, side="right")))
        yield order[start:end]
        start, done = end, int(ends[end - 1])


def length_batches(sentences: Sentences, batch_size: int) -> Iterator[np.ndarray]:
    """Numbers of sentences of about the same length, longest first, in batches of bounded size.

    A batch has at most `batch_size` sentences and, unless it is a single one, at most 2,048
    positions. The longest come first, so that what does not fit in memory fails at once.
    """
    order = np.argsort(-sentences.lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(sentences.lengths[order[start]]))
        size = max(1, min(batch_size, _MAX_POSITIONS // longest))
        yield order[start : start + size]
        start += size


def _normalized(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, got {batch_size}")


def _check_sentences(sentences: Iterable[Any]) -> None:
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise ConfigError(
                f"sentence {number} is not a str but {type(sentence).__name__}",
                hint="Give a str, a list of str, or an iterator of str",
            )
