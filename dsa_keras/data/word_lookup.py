"""From sentences to words and word ids, by the operations that are exported too.

This is the one place where text becomes ids, training and use alike: `WordLookup` for sentences of
a model that knows its vocabulary, `TokenizedSentences` for sentences whose vocabulary is still to
be made of them, which are tokenised once for both.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.data.tokenizers import tokenize_tensor, utf8
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.progress import progress_bar

_CHUNK = 8192

UNKNOWN_ID = 1
"""Of every word that a vocabulary does not have."""


@dataclass(frozen=True)
class Sentences:
    """Word ids of many sentences, one after another in one array.

    Attributes:
        ids: int32, the ids of all words.
        offsets: int64, where each sentence starts in `ids`, and the end of the last one.
        cut: for each sentence, whether it had more words than `MAX_WORDS` and lost those; None
            where that was not asked.
    """

    ids: np.ndarray
    offsets: np.ndarray
    cut: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of words of each sentence."""
        return np.diff(self.offsets)

    @property
    def known(self) -> np.ndarray:
        """Number of words of each sentence that the vocabulary has."""
        counts = np.concatenate([[0], np.cumsum(self.ids != UNKNOWN_ID)])
        return np.diff(counts[self.offsets])

    def chosen(self, which: Sequence[int] | np.ndarray) -> Sentences:
        """Some of the sentences, in the order asked for."""
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.offsets[which] - offsets[:-1], lengths)
        cut = None if self.cut is None else self.cut[which]
        return Sentences(self.ids[np.arange(offsets[-1]) + moved], offsets, cut)

    def padded(self, which: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """The ids of some sentences or all, `(sentences, longest, at least 1)`, padded with 0."""
        which = np.arange(len(self)) if which is None else which
        lengths = self.lengths[which]
        columns = np.arange(max(1, lengths.max(initial=0)))
        inside = columns < lengths[:, None]
        rows = np.zeros(inside.shape, np.int32)
        rows[inside] = self.ids[(self.offsets[which][:, None] + columns)[inside]]
        return rows


class WordLookup:
    """Tokenises sentences and looks their words up.

    Args:
        tokenizer: name of the tokeniser.
        vocabulary: the words that have an id.
        lowercase: whether letters are lower-cased.
    """

    def __init__(self, tokenizer: str, vocabulary: Vocabulary, lowercase: bool = False) -> None:
        def ids(words: Any) -> tuple[Any, Any]:
            return vocabulary.lookup(words.flat_values), words.row_lengths()

        self._graph = _word_graph(ids, tokenizer, lowercase)

    def __call__(self, sentences: Sequence[str]) -> Sentences:
        """The ids of the words of each sentence."""
        parts = list(_in_chunks(self._graph, sentences, "looking words up"))
        ids = [np.zeros(0, np.int32), *(part[0] for part in parts)]
        lengths = [np.zeros(1, np.int64), *(part[1] for part in parts)]
        cut = np.concatenate([np.zeros(0, bool), *(part[2] for part in parts)])
        return Sentences(np.concatenate(ids), np.cumsum(np.concatenate(lengths)), cut)


class TokenizedSentences:
    """The words of sentences, each distinct word kept once.

    Args:
        sentences: any texts.
        tokenizer: name of the tokeniser.
        lowercase: whether letters are lower-cased.
    """

    def __init__(self, sentences: Sequence[str], tokenizer: str, lowercase: bool = False) -> None:
        numbers: dict[bytes, int] = {}
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        graph = _distinct_words(tokenizer, lowercase)
        for found, index, of_each, _ in _in_chunks(graph, sentences, "splitting words"):
            of_chunk = [numbers.setdefault(word, len(numbers)) for word in found.tolist()]
            ids.append(np.array(of_chunk, np.int32)[index])
            lengths.append(of_each)
        self.distinct = [word.decode() for word in numbers]
        self._numbers = Sentences(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))

    def __len__(self) -> int:
        return len(self._numbers)

    def words(self) -> list[tuple[str, ...]]:
        """The words of each sentence."""
        ids, offsets = self._numbers.ids.tolist(), self._numbers.offsets.tolist()
        return [
            tuple(self.distinct[number] for number in ids[start:end])
            for start, end in itertools.pairwise(offsets)
        ]

    def counts(self, which: Sequence[int] | np.ndarray | None = None) -> Counter[str]:
        """How often each word occurs in some of the sentences, or in all."""
        chosen = self._numbers if which is None else self._numbers.chosen(which)
        counted = np.bincount(chosen.ids, minlength=len(self.distinct)).tolist()
        pairs = zip(self.distinct, counted, strict=True)
        return Counter({word: count for word, count in pairs if count})

    def ids(self, vocabulary: Vocabulary) -> Sentences:
        """The sentences with the ids that a vocabulary gives."""
        of_words = np.array([*vocabulary.ids(self.distinct), 0], np.int32)
        return Sentences(of_words[self._numbers.ids], self._numbers.offsets)


@functools.cache
def _distinct_words(tokenizer: str, lowercase: bool) -> Callable[[Any], Any]:
    """A graph from sentences to their distinct words, made once: to trace it takes a while."""
    import tensorflow as tf

    def distinct(words: Any) -> tuple[Any, ...]:
        found, index = tf.unique(words.flat_values)
        return found, index, words.row_lengths()

    return _word_graph(distinct, tokenizer, lowercase)


def _word_graph(
    operation: Callable[[Any], tuple[Any, ...]], tokenizer: str, lowercase: bool
) -> Callable[[Any], tuple[Any, ...]]:
    """A graph that applies an operation to the words of sentences, and tells which were cut."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def graph(texts: Any) -> tuple[Any, ...]:
        words = tokenize_tensor(texts, tokenizer, lowercase)
        return *operation(words[:, :MAX_WORDS]), words.row_lengths() > MAX_WORDS

    return graph


def _in_chunks(
    graph: Callable[[Any], Any], sentences: Sequence[str], doing: str
) -> Iterator[tuple[np.ndarray, ...]]:
    """Feeds sentences to a graph, some thousand at a time."""
    import tensorflow as tf

    with progress_bar(len(sentences), doing, unit=" sentences") as bar:
        for start in range(0, len(sentences), _CHUNK):
            chunk = [utf8(one) for one in sentences[start : start + _CHUNK]]
            yield tuple(part.numpy() for part in graph(tf.constant(chunk)))
            bar.update(len(chunk))
