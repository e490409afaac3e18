"""The composite function h of Eq. 2-5: 1D convolution, dropout, leaky ReLU."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import REGISTERED_PACKAGE
from dsa_keras.layers.convolution import WordConvolution, WordProduct
from dsa_keras.layers.dropout import WordDropout


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class CompositeFunction(keras.layers.Layer):
    """h of Eq. 2-5: a convolution that keeps the number of words, dropout, then LeakyReLU.

    A building block of `DenseConvBlock` and `WordCompression`, which check its arguments. Kernel
    size 1 is computed as a matrix product.

    **Masking.** Masked words must be zero in the inputs and are zero in the output. Otherwise they
    would hold LeakyReLU(bias), and the next convolution would carry that into real words.

    Args:
        filters: number of output features per word.
        kernel_size: number of words that the convolution sees at once, odd.
        dropout: dropout rate between convolution and activation.
        negative_slope: slope of the LeakyReLU for negative values; 0.01 is the default of PyTorch,
            which the paper used.
        kernel_initializer: initializer of the convolution's kernel.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        dropout: float,
        negative_slope: float,
        kernel_initializer: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.negative_slope = negative_slope
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        # Cloned, because an initializer instance gives the same numbers each time it is asked.
        options = {
            "kernel_initializer": self.kernel_initializer.clone(),
            "dtype": self.dtype_policy,
            "name": "convolution",
        }
        if kernel_size == 1:
            self._convolution = WordProduct(filters, **options)
        else:
            self._convolution = WordConvolution(filters, kernel_size, **options)
        self._dropout = WordDropout(dropout, dtype=self.dtype_policy)

    @property
    def kernel(self) -> Any:
        """Value of the kernel, `(features, filters)` or `(kernel_size, features, filters)`."""
        return self._convolution.kernel.value

    @property
    def bias(self) -> Any:
        """Value of the bias, `(filters,)`."""
        return self._convolution.bias.value

    def build(self, input_shape: Any) -> None:
        """Creates the kernel and the bias."""
        self._convolution.build(input_shape)

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        same_sentence: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Computes h(inputs); for `same_sentence` see `WordConvolution`.

        With kernel size 1 the inputs may be a list of parts of the features.
        """
        if isinstance(mask, list | tuple):
            mask = mask[0]  # Keras gives one per part.
        sees = {} if same_sentence is None else {"same_sentence": same_sentence}
        x = ops.leaky_relu(self._convolution(inputs, **sees), self.negative_slope)
        # LeakyReLU(s x) = s LeakyReLU(x) for every s >= 0, so dropout can wait for the mask.
        return self._dropout(x, mask=mask, training=training)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: the blocks pass the mask on; the convolutions inside would only drop it."""

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words, features)` to `(batch, words, filters)`."""
        return (*input_shape[:-1], self.filters)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "dropout": self.dropout,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
