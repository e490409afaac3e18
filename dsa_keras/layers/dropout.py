"""Dropout of words' features, together with the mask of the words."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE, dropout_rate

_LEVELS = 2**16


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordDropout(keras.layers.Layer):
    """Sets a share of the features to zero in training, and those of masked words always.

    What stays is divided by the share that stays, so its mean does not change. Each decision takes
    16 random bits, half of what `keras.layers.Dropout` draws, and mask and dropout are one product:
    random numbers and such products are what a training step takes time for besides matrix
    products. So the rate is a multiple of 1/65,536 (0.2 is 0.199997), and so is the division.

    Args:
        rate: share of the features to drop.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, ..., features)`.
        mask: bool, of the shape of `inputs` without features; None keeps everything.
        training: whether to drop.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate = dropout_rate("rate", rate)
        self._seeds = keras.random.SeedGenerator()
        self.built = True

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Drops; see the class."""
        dropped = round(self.rate * _LEVELS)
        if not (training and dropped):
            if mask is None:
                return inputs
            return inputs * tf.cast(tf.expand_dims(mask, -1), inputs.dtype)
        # A feature stays if its bits are above this number; no bits are above the highest.
        limit = tf.constant(dropped - 1, tf.uint16)
        if mask is not None:
            limit = tf.where(tf.expand_dims(mask, -1), limit, tf.constant(_LEVELS - 1, tf.uint16))
        stays = tf.cast(self._bits(tf.shape(inputs)) > limit, inputs.dtype)
        return inputs * (stays * (_LEVELS / (_LEVELS - dropped)))

    def _bits(self, shape: Any) -> Any:
        """Random numbers from 0 to 65,535: two from each that the generator draws."""
        size = tf.reduce_prod(shape)
        seed = tf.cast(self._seeds.next(), tf.int32)
        pairs = tf.random.stateless_uniform([(size + 1) // 2], seed, None, None, tf.uint32)
        return tf.reshape(tf.reshape(tf.bitcast(pairs, tf.uint16), [-1])[:size], shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape does not change."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        return {**super().get_config(), "rate": self.rate}
