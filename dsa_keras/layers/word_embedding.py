"""Word vectors, fixed or trained, with dropout."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from dsa_keras.layers.checks import REGISTERED_PACKAGE, dropout_rate, positive_integer
from dsa_keras.layers.dropout import WordDropout


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordEmbedding(keras.layers.Layer):
    """Looks up X^0, the vectors of the words, and applies dropout to their values.

    Vectors are assigned after building (`layer.assign_vectors(matrix)`), so they are never a
    constant of the graph. Fixed vectors get no gradient. The gradient of trained ones is made
    dense: if a word occurs twice in a batch, Adam and Adadelta would otherwise square the parts of
    its gradient before adding them.

    **Masking.** Id 0 is padding: its output is the zero vector, and it is masked for the layers
    that follow.

    Args:
        vocabulary_size: number of word ids, including 0 (padding) and 1 (unknown).
        dimension: d_0, the size of a word's vector.
        dropout: dropout rate for the values of the vectors.
        train_vectors: whether the vectors are trained; the paper fixes them.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word ids, integers of shape `(batch, words)`.
        training: whether to apply dropout.

    Output shape:
        `(batch, words, dimension)`.

    Example:

    >>> WordEmbedding(vocabulary_size=1000, dimension=300)(np.array([[5, 7, 0]])).shape
    TensorShape([1, 3, 300])
    """

    def __init__(
        self,
        vocabulary_size: int,
        dimension: int = 300,
        dropout: float = 0.3,
        train_vectors: bool = False,
        **kwargs: Any,
    ) -> None:
        # Keras would cast ids to the compute dtype, and float16 cannot tell large ids apart.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.vocabulary_size = positive_integer("vocabulary_size", vocabulary_size)
        self.dimension = positive_integer("dimension", dimension)
        self.dropout = dropout_rate("dropout", dropout)
        self.train_vectors = train_vectors
        self._dropout = WordDropout(self.dropout, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        """Creates the table, which is uniformly random until vectors are assigned."""
        if len(input_shape) != 2:
            raise ValueError(
                "WordEmbedding expects word ids of shape (batch, words). "
                f"Received: shape={tuple(input_shape)}"
            )
        self.vectors = self.add_weight(
            name="vectors",
            shape=(self.vocabulary_size, self.dimension),
            initializer=keras.initializers.RandomUniform(-0.05, 0.05),
            trainable=self.train_vectors,
        )

    def assign_vectors(self, matrix: Any) -> None:
        """Sets the table to the word vectors `(vocabulary_size, dimension)`."""
        expected = (self.vocabulary_size, self.dimension)
        if tuple(matrix.shape) != expected:
            raise ValueError(
                f"`matrix` must have shape {expected}. Received: matrix of shape "
                f"{tuple(matrix.shape)}"
            )
        self.vectors.assign(matrix)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Looks the ids up; see the class."""
        ids = ops.cast(inputs, "int32")
        table = self.vectors.value
        x = _look_up(tf.identity(table), ids) if self.train_vectors else tf.gather(table, ids)
        x = ops.cast(x, self.compute_dtype)
        return self._dropout(x, mask=ids != 0, training=training)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns the mask, true where there is a word."""
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words)` to `(batch, words, dimension)`."""
        return (*input_shape, self.dimension)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        config = super().get_config()
        config.pop("autocast", None)
        return {
            **config,
            "vocabulary_size": self.vocabulary_size,
            "dimension": self.dimension,
            "dropout": self.dropout,
            "train_vectors": self.train_vectors,
        }


@tf.custom_gradient
def _look_up(table: Any, ids: Any) -> tuple[Any, Any]:
    size = tf.shape(table)[0]

    def gradient(upstream: Any) -> tuple[Any, None]:
        return tf.math.unsorted_segment_sum(upstream, ids, size), None

    return tf.gather(table, ids), gradient
