"""Convolution over words, computed as one matrix product."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordConvolution(keras.layers.Conv1D):
    """`keras.layers.Conv1D` with stride 1 that keeps the number of words, only faster.

    Every word is multiplied with all k parts of the kernel at once, `(words, features) x (features,
    k * filters)`, and the products are then added up, each shifted to its place. Weights and
    answers are those of `Conv1D(filters, kernel_size, padding="same")`; on a CPU the products run
    at the speed of a plain matrix product, forward and backward, where TensorFlow's convolutions of
    one long row reach half of it or less.

    Args:
        filters: features out per word.
        kernel_size: k, words seen at once, odd.
        **kwargs: of `keras.layers.Conv1D`, but for strides, padding, groups, dilation and
            activation.
    """

    def __init__(self, filters: int, kernel_size: int, **kwargs: Any) -> None:
        super().__init__(filters, kernel_size, padding="same", **kwargs)
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        """Convolves `(batch, words, features)` to `(batch, words, filters)`."""
        return tf.nn.bias_add(_convolve(inputs, tf.convert_to_tensor(self.kernel)), self.bias)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        config = super().get_config()
        for fixed in ("strides", "padding", "data_format", "dilation_rate", "groups", "activation"):
            config.pop(fixed)
        return config


@tf.custom_gradient
def _convolve(words: Any, kernel: Any) -> tuple[Any, Any]:
    """The convolution and its gradient, which is two matrix products of the same shape."""
    size, features, filters = kernel.shape
    around = [[0, 0], [size // 2, size // 2], [0, 0]]
    shape = tf.shape(words)
    batch, length = shape[0], shape[1]
    rows = tf.reshape(words, [-1, features])
    parts = tf.reshape(tf.transpose(kernel, [1, 0, 2]), [features, size * filters])
    products = tf.pad(tf.reshape(rows @ parts, tf.stack([batch, length, -1])), around)
    convolved = tf.add_n(
        [
            products[:, part : part + length, part * filters : (part + 1) * filters]
            for part in range(size)
        ]
    )

    def gradient(upstream: Any) -> tuple[Any, Any]:
        upstream = tf.pad(upstream, around)
        shifted = tf.concat(
            [upstream[:, part : part + length] for part in reversed(range(size))], axis=-1
        )
        shifted = tf.reshape(shifted, [-1, size * filters])
        by_words = tf.reshape(tf.matmul(shifted, parts, transpose_b=True), shape)
        by_parts = tf.reshape(tf.matmul(rows, shifted, transpose_a=True), [features, size, filters])
        return by_words, tf.transpose(by_parts, [1, 0, 2])

    return convolved, gradient
