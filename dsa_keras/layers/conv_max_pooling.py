"""The encoder of Kim (2014): convolutions of several widths, each pooled over the sentence."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import (
    REGISTERED_PACKAGE,
    positive_integer,
    word_flags,
    words_shape,
    zero_masked,
)


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class ConvMaxPooling(keras.layers.Layer):
    """Convolutions of several widths, each filter pooled over the sentence.

    A convolution with ReLU slides over the words; what counts is its largest value.

    As in Kim's code a sentence is surrounded by `width - 1` zero words on both sides, so that every
    window that touches a word counts and a sentence of one word has windows too.

    **Masking.** Masked words are zero, and windows without a real word are left out of the maximum:
    otherwise ReLU(bias) of the padding would win over a sentence whose own windows are lower. A
    sentence with no word gives the zero vector.

    Args:
        widths: words per window, one convolution for each.
        filters: filters of each convolution.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        inputs: words, `(batch, words, features)`.
        mask: `(batch, words)`, bool, int or float; false where there is no word.

    Output shape:
        `(batch, len(widths) * filters)`.

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
            raise ValueError("`widths` must name at least one window width.")
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

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """Computes the pooled filters; see the class."""
        words_shape(self, inputs.shape)
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        mask = word_flags("mask", mask, inputs)
        words = zero_masked(inputs, mask)
        real = ops.cast(mask, words.dtype)
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

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """A sentence vector has no words, so no mask."""

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """`(batch, words, features)` to `(batch, len(widths) * filters)`."""
        return (input_shape[0], len(self.widths) * self.filters)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        return {**super().get_config(), "widths": list(self.widths), "filters": self.filters}
