"""From the vectors of distinct sentences to the examples of a batch."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class GatherSentences(keras.layers.Layer):
    """Picks the sentence vectors of each example from the vectors of all distinct sentences.

    **Masking.** Sentence vectors have no mask: none is used or passed on.

    Call arguments:
        inputs: sentence vectors of shape `(sentences, units)` or `(rows, segments, units)`.
        index: integers of shape `(batch,)`, or `(batch, 2)` for pairs: the number of the sentence,
            counted from 0 through all rows.

    Output shape:
        `(batch, units)` or `(batch, 2, units)`.

    Example:

    >>> GatherSentences()(np.array([[1.0], [2.0]]), index=np.array([1, 1, 0])).numpy().ravel()
    array([2., 2., 1.], dtype=float32)
    """

    def call(self, inputs: Any, index: Any) -> Any:
        """Picks the vectors; see the class."""
        return tf.gather(tf.reshape(inputs, [-1, inputs.shape[-1]]), tf.cast(index, tf.int32))

    def compute_output_spec(self, inputs: Any, index: Any) -> Any:
        """Returns `(batch, units)` or `(batch, 2, units)`, in the dtype of the layer."""
        return keras.KerasTensor((*index.shape, inputs.shape[-1]), dtype=self.compute_dtype)
