"""From texts to the batches that train: tokenised once, then packed.

A batch is random examples of all lengths whose distinct sentences lie one after another in one row
(`word_ids`, `segment_ids`); `index` says which sentence, or which two, each example is about. So a
batch has the statistics of a plain random batch, almost no padding, and a premise that occurs three
times in it is encoded once. The row is padded to a multiple of `LENGTH_MULTIPLE`, which leaves few
distinct shapes. Nothing lies between sentences: the convolutions know where one ends.

Measured on real SST phrases and SNLI pairs by `benchmarks/batches.py`; its figures are in
`results/batches.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.data.dataset import Split, Text
from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.data.tokenizers import tokenize_tensor, utf8
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.progress import progress_bar

if TYPE_CHECKING:
    import tensorflow as tf

LENGTH_MULTIPLE = 32
"""Packed rows are padded to a multiple of this many positions."""

_CHUNK = 8192


@dataclass(frozen=True)
class Sentences:
    """Word ids of many sentences, one after another in one array.

    Attributes:
        ids: int32, the ids of all words.
        offsets: int64, where each sentence starts in `ids`, and the end of the last one.
    """

    ids: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of words of each sentence."""
        return np.diff(self.offsets)

    def chosen(self, which: Sequence[int] | np.ndarray) -> Sentences:
        """Some of the sentences, in the order asked for."""
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.offsets[which] - offsets[:-1], lengths)
        return Sentences(self.ids[np.arange(offsets[-1]) + moved], offsets)

    def padded(self, which: Sequence[int] | np.ndarray) -> np.ndarray:
        """The ids of some sentences, `(sentences, longest, at least 1)`, padded with 0."""
        lengths = self.lengths[which]
        columns = np.arange(max(1, lengths.max(initial=0)))
        inside = columns < lengths[:, None]
        rows = np.zeros(inside.shape, np.int32)
        rows[inside] = self.ids[(self.offsets[which][:, None] + columns)[inside]]
        return rows


@dataclass(frozen=True)
class Prepared:
    """A split as numbers: its distinct sentences, and which of them each example is about.

    Attributes:
        sentences: the distinct sentences.
        index: int32, `(examples,)`, or `(examples, 2)` with premise and hypothesis.
        labels: int32, `(examples,)`.
    """

    sentences: Sentences
    index: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_words(self) -> int:
        """Words of all examples; a sentence counts as often as examples are about it."""
        return int(self.sentences.lengths[self.index].sum())


def distinct(texts: Sequence[Text]) -> tuple[list[str], np.ndarray]:
    """The distinct sentences of `texts` in order of appearance, and an index into them."""
    numbers: dict[str, int] = {}
    flat = [
        numbers.setdefault(sentence, len(numbers))
        for text in texts
        for sentence in ((text,) if isinstance(text, str) else text)
    ]
    index = np.array(flat, np.int32)
    if texts and not isinstance(texts[0], str):
        index = index.reshape(len(texts), 2)
    return list(numbers), index


class WordLookup:
    """Tokenises sentences and looks their words up, with the operations that are exported too.

    Args:
        tokenizer: name of the tokeniser.
        vocabulary: the words that have an id.
    """

    def __init__(self, tokenizer: str, vocabulary: Vocabulary) -> None:
        def ids(words: Any) -> tuple[Any, Any]:
            return vocabulary.lookup(words.flat_values), words.row_lengths()

        self._graph = _word_graph(ids, tokenizer)

    def __call__(self, sentences: Sequence[str]) -> Sentences:
        """The ids of the words of each sentence."""
        parts = list(_in_chunks(self._graph, sentences, "looking words up"))
        ids = [np.zeros(0, np.int32), *(part[0] for part in parts)]
        lengths = [np.zeros(1, np.int64), *(part[1] for part in parts)]
        return Sentences(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))


def count_words(sentences: Sequence[str], tokenizer: str) -> Counter[str]:
    """How often each word occurs in the sentences."""
    import tensorflow as tf

    def counted(words: Any) -> tuple[Any, Any]:
        unique, _, counts = tf.unique_with_counts(words.flat_values)
        return unique, counts

    total: Counter[str] = Counter()
    graph = _word_graph(counted, tokenizer)
    for words, counts in _in_chunks(graph, sentences, "counting words"):
        for word, count in zip(words, counts, strict=True):
            total[word.decode()] += int(count)
    return total


def prepare(split: Split, tokenizer: str, vocabulary: Vocabulary) -> Prepared:
    """Turns a split into numbers, once for all epochs."""
    sentences, index = distinct(split.texts)
    return Prepared(WordLookup(tokenizer, vocabulary)(sentences), index, split.labels)


def num_batches(examples: int, batch_size: int) -> int:
    """How many batches of at most `batch_size` it takes."""
    return -(-examples // batch_size)


def packed_batches(
    prepared: Prepared,
    batch_size: int,
    *,
    seed: int | None = None,
    epoch: Any = 0,
    length_multiple: int = LENGTH_MULTIPLE,
    groups: int = 1,
) -> tf.data.Dataset:
    """A pipeline of packed batches, `(inputs of pack_classifier, labels)`, for one epoch.

    Every example comes exactly once. Batches differ in size by one example at most, so that there
    is no small last batch whose batch-norm statistics would be off. The next batch is prepared
    while one trains.

    Args:
        prepared: the examples.
        batch_size: examples in a batch, at most.
        seed: shuffles with it; None keeps the order.
        epoch: number of the epoch, or a variable that holds it: each has an order of its own, which
            depends on seed and epoch only, so that training can go on after a stop.
        length_multiple: rows are padded to a multiple of this.
        groups: each batch is dealt out as this many, one for each device that trains.
    """
    import tensorflow as tf

    examples = len(prepared)
    count = num_batches(examples, batch_size) * groups
    ids = tf.constant(prepared.sentences.ids)
    starts = tf.constant(prepared.sentences.offsets[:-1])
    ends = tf.constant(prepared.sentences.offsets[1:])
    all_index, all_labels = tf.constant(prepared.index), tf.constant(prepared.labels)

    def order(_: Any) -> Any:
        numbers = tf.range(examples)
        if seed is None:
            return numbers
        return tf.random.experimental.stateless_shuffle(numbers, seed=[seed, epoch])

    def batch(number: Any, order: Any) -> tuple[dict[str, Any], Any]:
        first, last = number * examples // count, (number + 1) * examples // count
        chosen = order[first:last]
        index = tf.gather(all_index, chosen)
        which, position = tf.unique(tf.reshape(index, [-1]))
        words = tf.ragged.range(tf.gather(starts, which), tf.gather(ends, which))
        words = words.with_flat_values(tf.gather(ids, words.flat_values))
        inputs = pack(words, length_multiple)
        inputs["index"] = tf.reshape(position, tf.shape(index))
        inputs["index"].set_shape([None, *index.shape[1:]])
        return inputs, tf.gather(all_labels, chosen)

    def batches(order: Any) -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(count)
        return numbers.map(
            lambda number: batch(number, order), num_parallel_calls=1, deterministic=True
        )

    dataset = tf.data.Dataset.from_tensors(0).map(order).flat_map(batches)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count)).prefetch(4)
    # There is nothing to tune, and the tuner's thread may hold up the end of an epoch for seconds.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def pack(sentences: Any, length_multiple: int = 1) -> dict[str, Any]:
    """Lays ragged word ids `(sentences, words)` into one row: `word_ids` and `segment_ids`.

    >>> packed = pack(tf.ragged.constant([[7, 8], [9]]), length_multiple=4)
    >>> packed["word_ids"].numpy(), packed["segment_ids"].numpy()
    (array([[7, 8, 9, 0]], dtype=int32), array([[1, 1, 2, 0]], dtype=int32))
    """
    import tensorflow as tf

    row, numbers = sentences.flat_values, sentences.value_rowids() + 1
    used = tf.size(row)
    # At least one position, for a batch in which no sentence has a word.
    length = tf.maximum(-(-used // length_multiple), 1) * length_multiple
    row, numbers = (
        tf.pad(tf.cast(values, tf.int32), [[0, length - used]]) for values in (row, numbers)
    )
    return {"word_ids": tf.expand_dims(row, 0), "segment_ids": tf.expand_dims(numbers, 0)}


def _word_graph(operation: Callable[[Any], Any], tokenizer: str) -> Callable[[Any], Any]:
    """A graph that applies an operation to the words of sentences."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def graph(texts: Any) -> Any:
        return operation(tokenize_tensor(texts, tokenizer)[:, :MAX_WORDS])

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
