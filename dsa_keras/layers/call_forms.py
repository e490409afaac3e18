"""The two forms in which layers are called with the words of many sentences.

`PaddedWords`: one sentence per row, with a mask. `PackedWords`: several sentences per row, one
after another, with segment ids. Both have the same three operations per attention: a softmax over
the words of each sentence, the weighted sum of the words of a sentence, and the inner product of
every word with a vector of its sentence. So an attention layer is written only once, in these
terms. Scores, softmax and sums over iterations are at least float32, whatever the compute dtype;
the matrix products of padded words run in the compute dtype, as mixed precision intends.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import check_per_word, positive_integer, word_flags


def call_form(
    words: Any, mask: Any, segment_ids: Any, num_segments: Any
) -> PaddedWords | PackedWords:
    """Chooses the form of `words`, `(batch, words, features)`: packed if there are segment ids."""
    if mask is not None:
        mask = word_flags("mask", mask, words)
    if segment_ids is None:
        if num_segments is not None:
            raise ValueError(
                "`num_segments` can only be given together with `segment_ids`. "
                f"Received: num_segments={num_segments}, segment_ids=None"
            )
        return PaddedWords(mask)
    segment_ids = tf.cast(segment_ids, tf.int32)
    check_per_word("segment_ids", segment_ids, words)
    if mask is not None:
        segment_ids = tf.where(mask, segment_ids, 0)
    return PackedWords(words, segment_ids, num_segments)


class PaddedWords:
    """One sentence per row; values per word have shape `(batch, attentions, words)`."""

    def __init__(self, mask: Any) -> None:
        self.flags = mask
        self.mask = None if mask is None else tf.expand_dims(mask, 1)

    def arrange(self, words: Any, num_attentions: int) -> Any:
        """`(batch, words, attentions * units)` to `(batch, attentions, words, units)`."""
        if num_attentions == 1:
            return tf.expand_dims(words, 1)
        shape = tf.shape(words)
        units = words.shape[-1] // num_attentions
        words = tf.reshape(words, [shape[0], shape[1], num_attentions, units])
        return tf.transpose(words, [0, 2, 1, 3])

    def softmax(self, scores: Any) -> Any:
        """Weights that sum to 1 over the real words of a sentence and are exactly 0 elsewhere."""
        scores = _exact(scores)
        if self.mask is None:
            return tf.nn.softmax(scores, axis=-1)
        scores = tf.where(self.mask, scores, scores.dtype.min)
        scores = scores - tf.stop_gradient(tf.reduce_max(scores, axis=-1, keepdims=True))
        weights = tf.exp(scores) * tf.cast(self.mask, scores.dtype)
        return _divide(weights, tf.reduce_sum(weights, axis=-1, keepdims=True))

    def weighted_sum(self, weights: Any, words: Any) -> Any:
        """Sum of the weighted words of each sentence: `(batch, attentions, units)`."""
        weights = tf.cast(tf.expand_dims(weights, -2), words.dtype)
        return _exact(tf.squeeze(tf.matmul(weights, words), -2))

    def inner_product(self, words: Any, vectors: Any) -> Any:
        """Inner product of each word with the sentence's vector: `(batch, attentions, words)`."""
        vectors = tf.cast(tf.expand_dims(vectors, -1), words.dtype)
        return _exact(tf.squeeze(tf.matmul(words, vectors), -1))

    def weights_out(self, weights: Any) -> Any:
        """The weights as the layers return them: `(batch, attentions, words)`."""
        return weights

    def vectors_out(self, vectors: Any) -> Any:
        """The vectors as the layers return them: `(batch, attentions, units)`."""
        return vectors


class PackedWords:
    """Several sentences per row; values per word are flat, `(rows * words, attentions)`."""

    def __init__(self, words: Any, segment_ids: Any, num_segments: Any) -> None:
        self.rows, self.length = tf.shape(words)[0], tf.shape(words)[1]
        if num_segments is None:
            num_segments = tf.maximum(tf.reduce_max(segment_ids), 1)
        elif isinstance(num_segments, Integral):
            num_segments = positive_integer("num_segments", num_segments)
        else:
            num_segments = tf.cast(num_segments, tf.int32)
        self.num_segments = num_segments
        # Row 0 holds sentences 0 to num_segments - 1, row 1 the next ones, and so on; -1 stands for
        # no sentence, and the segment operations leave it out.
        first = tf.expand_dims(tf.range(self.rows) * num_segments, 1)
        real = (segment_ids > 0) & (segment_ids <= num_segments)
        self.flags = real
        self.sentence = tf.reshape(tf.where(real, segment_ids - 1 + first, -1), [-1])
        self.real = tf.expand_dims(self.sentence >= 0, -1)
        self.all_segments = self.rows * num_segments
        self.static = (
            words.shape[0],
            num_segments if isinstance(num_segments, int) else None,
            words.shape[1],
        )

    def lengths(self) -> Any:
        """The number of words of each sentence, `(rows * segments,)`."""
        ones = tf.ones_like(self.sentence)
        return tf.math.unsorted_segment_sum(ones, self.sentence, self.all_segments)

    def places_by_sentence(self) -> Any:
        """All places of the flat rows: the words sentence by sentence, in order, then the rest."""
        sentence = tf.where(self.sentence < 0, self.all_segments, self.sentence)
        return tf.argsort(sentence, stable=True)

    def arrange(self, words: Any, num_attentions: int) -> Any:
        """`(rows, words, attentions * units)` to `(rows * words, attentions, units)`."""
        return tf.reshape(words, [-1, num_attentions, words.shape[-1] // num_attentions])

    def softmax(self, scores: Any) -> Any:
        """Weights that sum to 1 over the words of a sentence and are exactly 0 elsewhere."""
        scores = _exact(scores)
        highest = tf.math.unsorted_segment_max(
            tf.stop_gradient(scores), self.sentence, self.all_segments
        )
        scores = tf.where(self.real, scores - self._per_word(highest), 0)
        weights = tf.exp(scores) * tf.cast(self.real, scores.dtype)
        return _divide(weights, self._per_word(self._per_sentence(weights)))

    def weighted_sum(self, weights: Any, words: Any) -> Any:
        """Sum of the weighted words of each sentence: `(rows * segments, attentions, units)`."""
        return self._per_sentence(tf.expand_dims(weights, -1) * _exact(words))

    def inner_product(self, words: Any, vectors: Any) -> Any:
        """Inner product of each word with its sentence's vector: `(rows * words, attentions)`."""
        return tf.reduce_sum(_exact(words) * self._per_word(vectors), axis=-1)

    def weights_out(self, weights: Any) -> Any:
        """The weights as the layers return them: `(rows, attentions, words)`."""
        attentions = weights.shape[-1]
        weights = tf.reshape(weights, [self.rows, self.length, attentions])
        rows, _, length = self.static
        return tf.ensure_shape(tf.transpose(weights, [0, 2, 1]), [rows, attentions, length])

    def vectors_out(self, vectors: Any) -> Any:
        """The vectors as the layers return them: `(rows, segments, attentions, units)`."""
        _, attentions, units = vectors.shape
        vectors = tf.reshape(vectors, [self.rows, self.num_segments, attentions, units])
        return tf.ensure_shape(vectors, [*self.static[:2], attentions, units])

    def _per_sentence(self, values: Any) -> Any:
        """Sums over the words of each sentence; values of no sentence must have a factor of zero.

        Then the gradient may be any number there, and costs one look-up per word.
        """

        @tf.custom_gradient
        def add_up(values: Any) -> tuple[Any, Any]:
            total = tf.math.unsorted_segment_sum(values, self.sentence, self.all_segments)
            return total, self._per_word

        return add_up(values)

    def _per_word(self, values: Any) -> Any:
        return tf.gather(values, tf.maximum(self.sentence, 0))


def _exact(values: Any) -> Any:
    """Casts to float32, or to float64 if the layer computes in it."""
    return tf.cast(values, keras.backend.result_type(values.dtype.name, "float32"))


def _divide(weights: Any, total: Any) -> Any:
    """Computes `weights / total`; zero for a sentence without words, whose total is zero."""
    return weights / tf.where(total > 0, total, 1)
