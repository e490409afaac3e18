"""The word vectors as they are stored for serving, and what storing them in fewer bits costs.

`float16` halves the table; `int8` stores each vector as 127 steps of its own scale, a quarter of
the size. Vectors are made float32 again after the look-up, so nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from dsa_keras.objectives import Objective

PRECISIONS = ("float32", "float16", "int8")
"""How the word vectors may be stored."""


class WordTable(keras.layers.Layer):
    """Takes the place of `WordEmbedding` in an encoder: look-up without dropout, any precision.

    **Masking.** As `WordEmbedding`: id 0 is padding, its output is zero and it is masked.

    Args:
        vectors: `(words, dimension)`.
        precision: one of `PRECISIONS`.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        inputs: word ids, int32 of shape `(batch, words)`.

    Output shape:
        `(batch, words, dimension)`.
    """

    def __init__(self, vectors: np.ndarray, precision: str = "float32", **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.dimension = vectors.shape[1]
        # Plain variables: what is saved is their values, not a Keras layer.
        self.tables = [tf.Variable(part, trainable=False) for part in encode(vectors, precision)]
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Looks the ids up; see the class."""
        table, *scales = self.tables
        x = tf.cast(tf.gather(table, inputs), tf.float32)
        for scale in scales:
            x *= tf.expand_dims(tf.gather(scale, inputs), -1)
        return x * tf.expand_dims(tf.cast(tf.not_equal(inputs, 0), tf.float32), -1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """True where there is a word."""
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """`(batch, words)` to `(batch, words, dimension)`."""
        return (*input_shape, self.dimension)


def encode(vectors: np.ndarray, precision: str) -> tuple[np.ndarray, ...]:
    """The arrays to store: the table, and for `int8` the size of a step of each row.

    >>> encode(np.array([[1.0, -2.0, 0.5]]), "int8")[0]
    array([[  64, -127,   32]], dtype=int8)
    """
    vectors = vectors.astype(np.float32)
    if precision != "int8":
        return (vectors.astype(precision),)
    scales = np.abs(vectors).max(axis=1) / 127
    steps = vectors / np.where(scales > 0, scales, 1)[:, None]
    return np.rint(steps).astype(np.int8), scales.astype(np.float32)


@dataclass(frozen=True)
class Change:
    """What a change of the model did to its answers on examples with targets.

    Attributes:
        before: the objective's own figure, of the model as trained.
        after: that of the changed one.
        largest: the largest change of a number that the model says.
        examples: how many examples it was measured on.
        figure: the name of the figure.
    """

    before: float
    after: float
    largest: float
    examples: int
    figure: str

    @classmethod
    def measured(
        cls, objective: Objective, before: np.ndarray, after: np.ndarray, targets: np.ndarray
    ) -> Change:
        """Compares what two models say in numbers."""
        old, new = (
            objective.evaluate(one, targets).figures()[objective.monitor] for one in (before, after)
        )
        largest = float(np.abs(before - after).max(initial=0))
        return cls(old, new, largest, len(targets), objective.monitor)

    def __str__(self) -> str:
        return (
            f"dev {self.figure} {self.before:.4f} -> {self.after:.4f} "
            f"({self.after - self.before:+.4f}) on {self.examples:,} examples; "
            f"largest change of a number {self.largest:.1e}"
        )
