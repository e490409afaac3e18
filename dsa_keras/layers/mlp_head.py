"""The classifier on top of sentence vectors."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from dsa_keras.layers.checks import REGISTERED_PACKAGE, dropout_rate, positive_integer
from dsa_keras.layers.dropout import WordDropout
from dsa_keras.layers.initializers import HeDropout


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class MLPHead(keras.layers.Layer):
    """The paper's multilayer perceptron on sentence vectors.

    Batch norm, dropout and a hidden layer with LeakyReLU, repeated; then the layer of the classes.

    Batch norm has the settings of PyTorch and so of the paper: momentum 0.1, which is 0.9 in the
    sense of Keras, and epsilon 1e-5.

    **Masking.** Sentence vectors have no mask: none is used or passed on.

    Args:
        num_classes: number of classes.
        hidden_units: number of units of each hidden layer.
        num_hidden_layers: number of hidden layers; in the paper 2 for SNLI and 1 for SST.
        dropout: dropout rate before each hidden layer.
        batch_norm_momentum: share of the old moving statistics that an update keeps.
        negative_slope: slope of the LeakyReLU for negative values.
        kernel_initializer: initializer of the hidden layers; None gives the paper's,
            `HeDropout(dropout)`. The last layer, which has no dropout, is plain He normal.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: sentence vectors of shape `(batch, features)`.
        training: whether to apply dropout and to normalize by the statistics of the batch.

    Output shape:
        `(batch, num_classes)`, logits in float32.

    Example:

    >>> MLPHead(num_classes=3, num_hidden_layers=2)(keras.random.normal((4, 2400))).shape
    TensorShape([4, 3])
    """

    def __init__(
        self,
        num_classes: int,
        hidden_units: int = 300,
        num_hidden_layers: int = 1,
        dropout: float = 0.3,
        batch_norm_momentum: float = 0.9,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_classes = positive_integer("num_classes", num_classes)
        self.hidden_units = positive_integer("hidden_units", hidden_units)
        self.num_hidden_layers = positive_integer("num_hidden_layers", num_hidden_layers)
        self.dropout = dropout_rate("dropout", dropout)
        self.batch_norm_momentum = batch_norm_momentum
        self.negative_slope = negative_slope
        self.kernel_initializer = keras.initializers.get(kernel_initializer or HeDropout(dropout))
        self._norms, self._dropouts, self._hidden = [], [], []
        for number in range(1, self.num_hidden_layers + 1):
            self._norms.append(
                keras.layers.BatchNormalization(
                    momentum=batch_norm_momentum,
                    epsilon=1e-5,
                    dtype=self.dtype_policy,
                    name=f"batch_norm{number}",
                )
            )
            self._dropouts.append(WordDropout(self.dropout, dtype=self.dtype_policy))
            self._hidden.append(
                keras.layers.Dense(
                    self.hidden_units,
                    kernel_initializer=self.kernel_initializer.clone(),
                    dtype=self.dtype_policy,
                    name=f"hidden{number}",
                )
            )
        self._classes = keras.layers.Dense(
            self.num_classes, kernel_initializer=HeDropout(0), dtype="float32", name="classes"
        )

    def build(self, input_shape: Any) -> None:
        """Builds the batch norms and dense layers one after another."""
        if len(input_shape) != 2:
            raise ValueError(
                "MLPHead expects vectors of shape (batch, features). "
                f"Received: shape={tuple(input_shape)}"
            )
        shape = tuple(input_shape)
        for norm, hidden in zip(self._norms, self._hidden, strict=True):
            norm.build(shape)
            hidden.build(shape)
            shape = (shape[0], self.hidden_units)
        self._classes.build(shape)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Computes the logits; see the class."""
        x = inputs
        for norm, dropout, hidden in zip(self._norms, self._dropouts, self._hidden, strict=True):
            x = dropout(norm(x, training=training), training=training)
            x = ops.leaky_relu(hidden(x), self.negative_slope)
        return self._classes(x)

    def take_statistics(self, inputs: Any) -> None:
        """Sets the statistics of batch norm to those of these vectors in inference.

        The moving statistics come from training, that is, with dropout, and lag behind the weights;
        those taken here are without dropout and with the current weights.

        Args:
            inputs: sentence vectors of shape `(batch, features)`, enough to represent all.
        """
        x = inputs
        for norm, hidden in zip(self._norms, self._hidden, strict=True):
            mean, variance = ops.moments(ops.cast(x, "float32"), axes=0)
            norm.moving_mean.assign(mean)
            norm.moving_variance.assign(variance)
            x = ops.leaky_relu(hidden(norm(x, training=False)), self.negative_slope)

    def folded(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns kernel and bias of each dense layer, with the batch norm before it folded in.

        In inference the head computes nothing else than these products, with LeakyReLU between
        them. The arrays are folded in float64 and returned in float32.

        Raises:
            ValueError: if the head has no weights yet.
        """
        if not self.built:
            raise ValueError("MLPHead must be built before its weights can be folded.")
        folded = []
        # Nothing is normalized before the classes.
        for norm, dense in zip([*self._norms, None], [*self._hidden, self._classes], strict=True):
            kernel, bias = (_float64(weight) for weight in (dense.kernel, dense.bias))
            if norm is not None:
                scale = _float64(norm.gamma) / np.sqrt(
                    _float64(norm.moving_variance) + norm.epsilon
                )
                bias = bias + (_float64(norm.beta) - _float64(norm.moving_mean) * scale) @ kernel
                kernel = scale[:, np.newaxis] * kernel
            folded.append((kernel.astype(np.float32), bias.astype(np.float32)))
        return folded

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns logits, which are float32 under mixed precision, too."""
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype="float32")

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, features)` to `(batch, num_classes)`."""
        return (input_shape[0], self.num_classes)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "hidden_units": self.hidden_units,
            "num_hidden_layers": self.num_hidden_layers,
            "dropout": self.dropout,
            "batch_norm_momentum": self.batch_norm_momentum,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def _float64(weight: Any) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(weight), np.float64)
