"""Dropout of the features of words, combined with the mask of the words."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE, dropout_rate

_LEVELS = 2**8


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordDropout(keras.layers.Layer):
    """Sets a share of the features to zero in training, and those of masked words always.

    The features that stay are divided by the share that stays, so the mean does not change. Besides
    matrix products, a training step spends much of its time on random numbers. So a decision takes
    8 random bits, a quarter of what `keras.layers.Dropout` draws, and mask and dropout are one
    product. A feature is dropped if its bits are below a limit. Every word draws which of two
    neighbouring limits it gets, such that the rate is exact to 1/65,536 (0.2 becomes 0.199997, by
    limits of 51 and 52 out of 256); the division uses this rate.

    Args:
        rate: share of the features to drop, in the range [0, 1).
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: tensor of shape `(batch, ..., features)`.
        mask: bool, of the shape of `inputs` without the features; None masks nothing.
        training: whether to apply dropout.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate = dropout_rate("rate", rate)
        self._seeds = keras.random.SeedGenerator()
        self.built = True

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Drops features; see the class."""
        dropped = round(self.rate * _LEVELS**2)
        if not (training and dropped):
            if mask is None:
                return inputs
            return inputs * tf.cast(tf.expand_dims(mask, -1), inputs.dtype)
        bits, of_word = self._bits(tf.shape(inputs))
        whole, rest = divmod(dropped, _LEVELS)
        # A feature stays if its bits are above this number; no bits are above the highest.
        kind = tf.uint8 if whole else tf.int16
        limit = tf.where(of_word < rest, tf.constant(whole, kind), tf.constant(whole - 1, kind))
        if mask is not None:
            limit = tf.where(tf.expand_dims(mask, -1), limit, tf.constant(_LEVELS - 1, kind))
        stays = tf.cast(tf.cast(bits, kind) > limit, inputs.dtype)
        return inputs * (stays * (_LEVELS**2 / (_LEVELS**2 - dropped)))

    def _bits(self, shape: Any) -> tuple[Any, Any]:
        """Draws random numbers from 0 to 255, one for every feature and one for every word."""
        words = tf.concat([shape[:-1], [1]], axis=0)
        sizes = [tf.reduce_prod(one) for one in (shape, words)]
        seed = tf.cast(self._seeds.next(), tf.int32)
        drawn = tf.random.stateless_uniform([sum(sizes) // 4 + 1], seed, None, None, tf.uint32)
        drawn = tf.reshape(tf.bitcast(drawn, tf.uint8), [-1])
        bits, of_word = drawn[: sizes[0]], drawn[sizes[0] : sum(sizes)]
        return tf.reshape(bits, shape), tf.reshape(of_word, words)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape, which does not change."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {**super().get_config(), "rate": self.rate}
