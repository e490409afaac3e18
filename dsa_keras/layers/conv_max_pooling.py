"""The encoder of Kim (2014): convolutions of several widths, each pooled over the sentence."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from dsa_keras.layers.call_forms import PackedWords, call_form
from dsa_keras.layers.checks import (
    REGISTERED_PACKAGE,
    positive_integer,
    words_shape,
    zero_masked,
)
from dsa_keras.layers.convolution import added_parts, all_parts


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class ConvMaxPooling(keras.layers.Layer):
    """Encodes a sentence by convolutions of several widths, each filter pooled over the sentence.

    Convolutions with ReLU slide over the words, and each filter gives its largest value.

    As in Kim's code a sentence is surrounded by `width - 1` zero words on both sides, so that every
    window that touches a word counts and even a sentence of one word has windows.

    **Masking.** Masked words are set to zero, and windows without a real word are left out of the
    maximum: otherwise ReLU(bias) of the padding would win over a sentence whose own windows have
    lower values. The output for a sentence without words is the zero vector.

    **Packed words.** With `segment_ids` a row holds several sentences, as in
    `DynamicSelfAttention`. Every word is multiplied with all parts of a kernel, and nothing is
    computed for padding.

    Args:
        widths: numbers of words per window; there is one convolution for each.
        filters: number of filters of each convolution.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word.
        segment_ids: integers of shape `(batch, words)`; see **Packed words**.
        num_segments: number of segments per row in the output, only with `segment_ids`; see
            `DynamicSelfAttention`.

    Output shape:
        `(batch, len(widths) * filters)`, or packed `(rows, segments, len(widths) * filters)`.

    Example:

    >>> ConvMaxPooling()(keras.random.normal((2, 7, 300))).shape
    TensorShape([2, 300])

    References:
        Kim, [Convolutional Neural Networks for Sentence
        Classification](https://arxiv.org/abs/1408.5882).
    """

    def __init__(
        self, widths: tuple[int, ...] = (3, 4, 5), filters: int = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.widths = tuple(positive_integer("widths", width) for width in widths)
        if not self.widths:
            raise ValueError(
                f"`widths` must contain at least one width. Received: widths={widths!r}"
            )
        self.filters = positive_integer("filters", filters)
        self._convolutions = [
            keras.layers.Conv1D(
                self.filters,
                width,
                activation="relu",
                dtype=self.dtype_policy,
                name=f"width{width}",
            )
            for width in self.widths
        ]

    def build(self, input_shape: Any) -> None:
        """Creates the kernels."""
        batch, _, features = words_shape(self, input_shape)
        for convolution in self._convolutions:
            convolution.build((batch, None, features))

    def call(
        self, inputs: Any, mask: Any = None, segment_ids: Any = None, num_segments: Any = None
    ) -> Any:
        """Computes the pooled filters; see the class."""
        words_shape(self, inputs.shape)
        form = call_form(inputs, mask, segment_ids, num_segments)
        words = zero_masked(inputs, form.flags)
        if isinstance(form, PackedWords):
            return self._pool_packed(words, form)
        flags = form.flags
        real = ops.ones(ops.shape(words)[:2]) if flags is None else flags
        return self._pool_padded(words, ops.cast(real, words.dtype))

    def _pool_padded(self, words: Any, real: Any) -> Any:
        pooled = []
        for width, convolution in zip(self.widths, self._convolutions, strict=True):
            around = (width - 1, width - 1)
            values = convolution(ops.pad(words, ((0, 0), around, (0, 0))))
            flags = ops.expand_dims(ops.pad(real, ((0, 0), around)), -1)
            touches = ops.max_pool(
                flags, width, strides=1, padding="valid", data_format="channels_last"
            )
            # ReLU is never negative, so zero is the value of a window that does not count.
            pooled.append(ops.max(values * touches, axis=1))
        return ops.concatenate(pooled, axis=-1)

    def _pool_packed(self, words: Any, form: PackedWords) -> Any:
        words = tf.reshape(words, [-1, words.shape[-1]])
        lengths, places = form.lengths(), form.places_by_sentence()
        pooled = []
        for width, convolution in zip(self.widths, self._convolutions, strict=True):
            seen, sentence = _windows(lengths, places, width)
            # After all words, one whose products are zero.
            products = tf.pad(
                words @ all_parts(tf.convert_to_tensor(convolution.kernel)), [[0, 1], [0, 0]]
            )
            highest = tf.math.unsorted_segment_max(
                added_parts(products, seen), sentence, form.all_segments
            )
            # The maximum of ReLU is ReLU of the maximum; of no window it is zero.
            pooled.append(tf.nn.relu(tf.nn.bias_add(highest, convolution.bias)))
        units = len(self.widths) * self.filters
        shape = [form.rows, form.num_segments, units]
        return tf.ensure_shape(tf.reshape(tf.concat(pooled, -1), shape), [*form.static[:2], units])

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: a sentence vector has no words axis, so no mask."""

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Traces the call, because the output depends on whether words are packed."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words, features)` to `(batch, len(widths) * filters)`, for padded words."""
        return (input_shape[0], len(self.widths) * self.filters)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {**super().get_config(), "widths": list(self.widths), "filters": self.filters}


def _windows(lengths: Any, by_sentence: Any, width: int) -> tuple[Any, Any]:
    """The place that each part of each window sees, `(windows, width)`, and the window's sentence.

    The lengths of the sentences and the places by sentence are those of `PackedWords`.

    A sentence of n words has `n + width - 1` windows. For a part that sees no word, the place is
    the one after all others. There are as many windows as could be needed, so that XLA knows their
    number; those left over see no word and belong to no sentence, -1.
    """
    places, sentences = tf.size(by_sentence), tf.size(lengths)
    windows = tf.where(lengths > 0, lengths + width - 1, 0)
    ends = tf.cumsum(windows)
    number = tf.range(places + sentences * (width - 1))
    sentence = tf.searchsorted(ends, number, side="right")
    needed = sentence < sentences
    sentence = tf.where(needed, sentence, 0)
    last = number - tf.gather(ends - windows, sentence)
    position = tf.expand_dims(last, 1) + tf.range(1 - width, 1)
    length, start = (
        tf.expand_dims(tf.gather(values, sentence), 1)
        for values in (lengths, tf.cumsum(lengths, exclusive=True))
    )
    real = tf.expand_dims(needed, 1) & (position >= 0) & (position < length)
    seen = tf.gather(by_sentence, tf.where(real, start + position, 0))
    return tf.where(real, seen, places), tf.where(needed, sentence, -1)
