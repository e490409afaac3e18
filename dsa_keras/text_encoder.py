"""One path from text to vectors: tokeniser, vocabulary, inputs and network, held together.

Training, `dsa_keras.load`, explanations, exports and their checks all ask a `TextEncoder` for
words, ids and vectors. Sentences are tokenised and looked up by the operations that are exported
too. To encode many, they are sorted by length, so that a batch has hardly any padding; what depends
on a word alone is computed once for all sentences with that word (`dsa_keras.layers.word_tables`).
Nothing is changed by a call, so one encoder serves many threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.data.word_lookup import Sentences, TokenizedSentences, WordLookup
from dsa_keras.models import Network
from dsa_keras.progress import progress_bar

_MAX_POSITIONS = 2048
_WINDOW = 65_536
_WORTH_TABLES = 2048


class TextEncoder:
    """Turns sentences into words, ids and vectors.

    Args:
        tokenizer: name of the tokeniser.
        vocabulary: the words that have an id.
        network: with its weights.
        lowercase: whether letters are lower-cased.
    """

    def __init__(
        self, tokenizer: str, vocabulary: Vocabulary, network: Network, lowercase: bool = False
    ) -> None:
        self.tokenizer, self.lowercase = tokenizer, lowercase
        self.vocabulary, self.network = vocabulary, network
        self.inputs = network.inputs
        look_up = WordLookup(tokenizer, vocabulary, lowercase)
        self.word_ids: Callable[[Sequence[str]], Sentences] = look_up
        """The ids of the words of each sentence."""
        self._encode = tf.function(
            lambda ids: network.encoder(ids, training=False),
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    @property
    def units(self) -> int:
        """Size of a sentence vector."""
        return self.network.units

    def words(self, sentences: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of each sentence, those that `word_ids` looks up."""
        return TokenizedSentences(sentences, self.tokenizer, self.lowercase).words()

    def vectors(
        self, sentences: Sequence[str], batch_size: int = 256, show_progress_bar: bool = False
    ) -> np.ndarray:
        """A vector for each sentence, `(sentences, units)`; see `SentenceModel.encode`."""
        return self.vectors_of(self.word_ids(sentences), batch_size, show_progress_bar)

    def vectors_of(
        self, found: Sentences, batch_size: int = 256, show_progress_bar: bool = False
    ) -> np.ndarray:
        """The same for sentences whose words `word_ids` has looked up."""
        vectors = np.empty((len(found), self.units), np.float32)
        with progress_bar(len(found), "encoding", show=show_progress_bar, unit=" sentences") as bar:
            for window in _windows(found):
                part, encode = self._prepared(found.chosen(window))
                for which in length_batches(part, batch_size):
                    vectors[window[which]] = encode(tf.constant(part.padded(which))).numpy()
                    bar.update(len(which))
        return vectors

    def _prepared(self, sentences: Sentences) -> tuple[Sentences, Callable[[Any], Any]]:
        """Sentences, and what encodes them: by tables where words occur again and again."""
        if len(sentences.ids) < _WORTH_TABLES or self._tabled is None:
            return sentences, self._encode
        known, places = np.unique(sentences.ids, return_inverse=True)
        if 2 * len(known) > len(places):
            return sentences, self._encode
        make, encode = self._tabled
        tables = make(tf.constant(np.concatenate([[0], known]), tf.int32))
        rows = Sentences((places + 1).astype(np.int32), sentences.offsets)
        return rows, lambda ids: encode(tables, ids)

    @functools.cached_property
    def _tabled(self) -> tuple[Any, Any] | None:
        tables = self.network.word_tables()
        return None if tables is None else tables.functions()


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
