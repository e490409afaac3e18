"""CNN with dense connection: the function Phi_k of Eq. 2-4."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import (
    REGISTERED_PACKAGE,
    check_per_word,
    dropout_rate,
    odd_integer,
    positive_integer,
    word_flags,
    words_shape,
)
from dsa_keras.layers.composite import CompositeFunction
from dsa_keras.layers.convolution import same_sentence
from dsa_keras.layers.initializers import HeDropout
from dsa_keras.layers.masked_words import MaskedWordsLayer


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class DenseConvBlock(MaskedWordsLayer):
    """Encodes each word with its neighbourhood: Phi_k of Eq. 2-4.

    ```
    X^1 = h^1(X^0)                              kernel size 1                 (Eq. 2)
    X^l = h^l(concat[X^{l-1}, ..., X^1])        kernel size k, l = 2, 3, ...  (Eq. 3)
    Phi_k(X^0) = concat[X^L, ..., X^1]                                        (Eq. 4)
    ```

    where h is convolution, dropout, LeakyReLU. `num_layers` counts the dense layers after h^1: the
    paper's parameter counts (its Table 1) need 4, its appendix, read literally, 3.

    **Masking.** Masked words are set to zero before every convolution and in the output, so that a
    word's vector depends only on the real words around it: it is the same alone, in a batch and
    under any padding. The mask is passed on to the next layer.

    **Packed words.** With `segment_ids` a row holds several sentences one after another, and no
    word sees a word of another sentence; see `DynamicSelfAttention`.

    Args:
        kernel_size: k, the number of words that each dense layer sees at once; odd.
        filters: d_l, the number of features that each dense layer adds.
        first_filters: d_1, the number of features of h^1.
        num_layers: number of dense layers after h^1.
        dropout: dropout rate in every h.
        negative_slope: slope of the LeakyReLU for negative values.
        kernel_initializer: initializer of all kernels; None gives the paper's,
            `HeDropout(dropout)`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, d_0)`.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word.
        segment_ids: integers of shape `(batch, words)`; see **Packed words**.
        training: whether to apply dropout.

    Output shape:
        `(batch, words, first_filters + num_layers * filters)`.

    Example:

    >>> x = keras.random.normal((2, 7, 300))
    >>> DenseConvBlock(kernel_size=3)(x).shape
    TensorShape([2, 7, 450])

    References:
        Yoon, Lee and Lee, [Dynamic Self-Attention](https://arxiv.org/abs/1808.07383), Section 3.1.
    """

    def __init__(
        self,
        kernel_size: int,
        filters: int = 75,
        first_filters: int = 150,
        num_layers: int = 4,
        dropout: float = 0.2,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.kernel_size = odd_integer("kernel_size", kernel_size)
        self.filters = positive_integer("filters", filters)
        self.first_filters = positive_integer("first_filters", first_filters)
        self.num_layers = positive_integer("num_layers", num_layers)
        self.dropout = dropout_rate("dropout", dropout)
        self.negative_slope = negative_slope
        self.kernel_initializer = keras.initializers.get(kernel_initializer or HeDropout(dropout))
        sizes = [(self.first_filters, 1)] + [(self.filters, self.kernel_size)] * self.num_layers
        self.h = [
            CompositeFunction(
                filters,
                kernel_size,
                dropout=self.dropout,
                negative_slope=negative_slope,
                kernel_initializer=self.kernel_initializer,
                dtype=self.dtype_policy,
                name=f"h{number}",
            )
            for number, (filters, kernel_size) in enumerate(sizes, start=1)
        ]

    def build(self, input_shape: Any) -> None:
        """Builds every h for the number of features that it gets."""
        batch, words, features = words_shape(self, input_shape)
        for number, h in enumerate(self.h):
            fed = self.first_filters + (number - 1) * self.filters if number else features
            h.build((batch, words, fed))

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        segment_ids: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Computes Phi_k(inputs); see the class."""
        words_shape(self, inputs.shape)
        if mask is not None:
            mask = word_flags("mask", mask, inputs)
        sees = {}
        if segment_ids is not None and self.kernel_size > 1:
            segment_ids = ops.cast(segment_ids, "int32")
            check_per_word("segment_ids", segment_ids, inputs)
            sees["same_sentence"] = same_sentence(segment_ids, self.kernel_size, inputs.dtype)
        first, *dense = self.h
        features = first(self.hide_masked(inputs, mask), mask=mask, training=training)
        for h in dense:
            new = h(features, mask=mask, training=training, **sees)
            features = ops.concatenate([new, features], axis=-1)
        return features

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words, d_0)` to `(batch, words, first_filters + num_layers * filters)`."""
        return (*input_shape[:-1], self.first_filters + self.num_layers * self.filters)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "filters": self.filters,
            "first_filters": self.first_filters,
            "num_layers": self.num_layers,
            "dropout": self.dropout,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
