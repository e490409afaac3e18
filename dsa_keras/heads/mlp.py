"""`mlp`: the MLP of the paper's classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dsa_keras.heads import register_head
from dsa_keras.heads.head import Head

if TYPE_CHECKING:
    import keras
    import numpy as np


@register_head("mlp")
@dataclass(frozen=True)
class Mlp(Head):
    """Batch norm, dropout and LeakyReLU in each of one or two hidden layers (Section 4).

    Attributes:
        hidden_units: width of the head's hidden layers.
        num_hidden_layers: number of the head's hidden layers.
        head_dropout: rate before each hidden layer.
        batch_norm_momentum: share of the moving statistics that an update keeps (0.9 is PyTorch's
            0.1).
        initial_scale: He weights times the square root of the dropout `"rate"`, of the `"keep"`
            probability, or `"none"`.
    """

    hidden_units: int = 300
    num_hidden_layers: int = 2
    head_dropout: float = 0.3
    batch_norm_momentum: float = 0.9
    initial_scale: Literal["rate", "keep", "none"] = "rate"

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require_each(("hidden_units", "num_hidden_layers"), "at least 1")
        self.require_each(("head_dropout", "batch_norm_momentum"), "in [0, 1)")

    def layer(self, num_outputs: int) -> keras.Layer:
        """Makes the layer."""
        from dsa_keras.layers import HeDropout, MLPHead

        return MLPHead(
            num_outputs,
            hidden_units=self.hidden_units,
            num_hidden_layers=self.num_hidden_layers,
            dropout=self.head_dropout,
            batch_norm_momentum=self.batch_norm_momentum,
            kernel_initializer=HeDropout(self.head_dropout, self.initial_scale),
            name="head",
        )

    def take_statistics(self, layer: keras.Layer, features: np.ndarray) -> None:
        """Those of batch norm."""
        layer.take_statistics(features)

    def inference(self, layer: keras.Layer) -> tuple[Callable[[Any], Any], list[Any]]:
        """The layer with batch norm folded into the dense layers that follow."""
        import tensorflow as tf

        dense = [
            tuple(tf.Variable(part, trainable=False) for part in parts) for parts in layer.folded()
        ]
        slope = layer.negative_slope

        def raw(features: Any) -> Any:
            *hidden, (kernel, bias) = dense
            for weights, shift in hidden:
                features = tf.nn.leaky_relu(tf.matmul(features, weights) + shift, slope)
            return tf.matmul(features, kernel) + bias

        return raw, [part for parts in dense for part in parts]
