"""The compression layer of Eq. 5, with L2 normalization per word."""

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
    """Compresses the features of each word into one unit vector (Eq. 5).

    ```
    X^c = h^c(concat[Phi_k1(X^0), Phi_k2(X^0), X^0])        (Eq. 5)
    x^c_i <- x^c_i / ||x^c_i||_2
    ```

    The norm is computed in float32 under mixed precision.

    **Masking.** The output of a masked word is the zero vector. The mask is passed on.

    Args:
        units: d_c, the number of output features per word.
        dropout: dropout rate in h^c.
        negative_slope: slope of the LeakyReLU for negative values.
        kernel_initializer: initializer of the kernel; None gives the paper's, `HeDropout(dropout)`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`, or a list of such tensors, which
            are concatenated in this order.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word. For a
            list of inputs it may be a list of masks, of which the first one counts.
        training: whether to apply dropout.

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
        """Returns the mask of the words, which is the first one of a list."""
        return mask[0] if isinstance(mask, list | tuple) else mask

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words, features)` to `(batch, words, units)`."""
        return (*joined_shape(input_shape)[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "units": self.units,
            "dropout": self.dropout,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def unit_vectors(words: Any) -> Any:
    """Divides every word by its L2 norm; a zero vector stays zero."""
    exact = ops.cast(words, keras.backend.result_type(words.dtype, "float32"))
    square = ops.sum(ops.square(exact), axis=-1, keepdims=True)
    return ops.cast(exact * ops.rsqrt(ops.maximum(square, 1e-12)), words.dtype)
