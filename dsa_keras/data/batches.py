"""From prepared examples to the batches that train: packed, with nothing computed for padding.

A batch is random examples of all lengths whose distinct sentences lie one after another in one row
(`word_ids`, `segment_ids`); `index` says which sentence, or which two, each example is about. So a
batch has the statistics of a plain random batch, almost no padding, and a premise that occurs three
times in it is encoded once. The row is padded to a multiple of `LENGTH_MULTIPLE`, which leaves few
distinct shapes. Nothing lies between sentences: the convolutions know where one ends.

Measured on real SST phrases and SNLI pairs by `benchmarks/batches.py`; its figures are in
`results/batches.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.data.word_lookup import Sentences

if TYPE_CHECKING:
    import tensorflow as tf

LENGTH_MULTIPLE = 32
"""Packed rows are padded to a multiple of this many positions."""


@dataclass(frozen=True)
class Prepared:
    """A split as numbers: its distinct sentences, and which of them each example is about.

    Attributes:
        sentences: the distinct sentences.
        index: int32, `(examples,)`, or `(examples, 2)` with premise and hypothesis.
        targets: `(examples,)`, or a row for each example.
    """

    sentences: Sentences
    index: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def num_words(self) -> int:
        """Words of all examples; a sentence counts as often as examples are about it."""
        return int(self.sentences.lengths[self.index].sum())


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
    """A pipeline of packed batches, `(inputs of `Network.packed_model`, targets)`, for one epoch.

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
    all_index, all_targets = tf.constant(prepared.index), tf.constant(prepared.targets)

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
        return inputs, tf.gather(all_targets, chosen)

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
