"""The compression layer of Eq. 5 with its L2 norm per word."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import (
    REGISTERED_PACKAGE,
    dropout_rate,
    positive_integer,
    word_flags,
    words_shape,
)
from dsa_keras.layers.composite import CompositeFunction
from dsa_keras.layers.convolution import joined_shape
from dsa_keras.layers.initializers import HeDropout
from dsa_keras.layers.masked_words import MaskedWordsLayer


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordCompression(MaskedWordsLayer):
    """Compresses what is known of each word into one unit vector (Eq. 5).

    ```
    X^c = h^c(concat[Phi_k1(X^0), Phi_k2(X^0), X^0])        (Eq. 5)
    x^c_i <- x^c_i / ||x^c_i||_2
    ```

    The norm is computed in float32 under mixed precision.

    **Masking.** A masked word gives the zero vector. The mask passes through.

    Args:
        units: d_c, features out per word.
        dropout: rate in h^c.
        negative_slope: of the LeakyReLU.
        kernel_initializer: None gives the paper's, `HeDropout(dropout)`.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        inputs: words, `(batch, words, features)`, or a list of such tensors, concatenated in its
            order.
        mask: `(batch, words)`, bool, int or float (or a list, one per input, of which the first
            counts).
        training: whether dropout is on.

    Output shape:
        `(batch, words, units)`.

    Example:

    >>> words = WordCompression(300)(keras.random.normal((2, 7, 1200)))
    >>> keras.ops.shape(words)
    (2, 7, 300)
    """

    def __init__(
        self,
        units: int,
        dropout: float = 0.2,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = positive_integer("units", units)
        self.dropout = dropout_rate("dropout", dropout)
        self.negative_slope = negative_slope
        self.kernel_initializer = keras.initializers.get(kernel_initializer or HeDropout(dropout))
        self.h = CompositeFunction(
            self.units,
            kernel_size=1,
            dropout=self.dropout,
            negative_slope=negative_slope,
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="hc",
        )

    def build(self, input_shape: Any) -> None:
        """Builds h^c for the features of all inputs together."""
        self.h.build(words_shape(self, joined_shape(input_shape)))

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Computes the compressed words; see the class."""
        parts = [inputs]
        if isinstance(inputs, list | tuple):
            parts, mask = list(inputs), mask[0] if isinstance(mask, list | tuple) else mask
        words_shape(self, joined_shape([tuple(part.shape) for part in parts]))
        if mask is not None:
            mask = word_flags("mask", mask, parts[0])
            parts = [self.hide_masked(part, mask) for part in parts]
        return unit_vectors(self.h(parts, mask=mask, training=training))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the words, which is the first one of a list."""
        return mask[0] if isinstance(mask, list | tuple) else mask

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """`(batch, words, features)` to `(batch, words, units)`."""
        return (*joined_shape(input_shape)[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        return {
            **super().get_config(),
            "units": self.units,
            "dropout": self.dropout,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def unit_vectors(words: Any) -> Any:
    """Every word divided by its L2 norm; a zero word stays zero."""
    exact = ops.cast(words, keras.backend.result_type(words.dtype, "float32"))
    square = ops.sum(ops.square(exact), axis=-1, keepdims=True)
    return ops.cast(exact * ops.rsqrt(ops.maximum(square, 1e-12)), words.dtype)
