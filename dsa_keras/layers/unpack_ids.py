"""From packed sentences back to one sentence in each row."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.call_forms import PackedWords
from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class UnpackIds(keras.layers.Layer):
    """Lays the word ids of packed sentences out with one sentence in each row.

    For encoders that take padded words only: their training goes through padding, which costs what
    padding costs, and XLA cannot compile it, since the longest sentence decides a shape.

    **Masking.** Id 0 is padding, before and after.

    Call arguments:
        inputs: word ids, `(rows, words)`.
        segment_ids: `(rows, words)`; see `DynamicSelfAttention`.
        num_segments: the number of segments per row, an int or a scalar tensor.

    Output shape:
        `(rows * num_segments, longest sentence)`, at least one position wide.

    Example:

    >>> UnpackIds()(
    ...     np.array([[7, 8, 9, 0]]), segment_ids=np.array([[1, 1, 2, 0]]), num_segments=2
    ... ).numpy()
    array([[7, 8],
           [9, 0]], dtype=int32)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)

    def call(self, inputs: Any, segment_ids: Any, num_segments: Any) -> Any:
        """Lays the ids out; see the class."""
        ids = tf.cast(inputs, tf.int32)
        form = PackedWords(tf.expand_dims(ids, -1), tf.cast(segment_ids, tf.int32), num_segments)
        lengths = form.lengths()
        places = form.places_by_sentence()[: tf.reduce_sum(lengths)]
        rows = tf.RaggedTensor.from_row_lengths(tf.gather(tf.reshape(ids, [-1]), places), lengths)
        rows = rows.to_tensor(0)
        rows = tf.pad(rows, [[0, 0], [0, tf.maximum(1 - tf.shape(rows)[1], 0)]])
        rows.set_shape([None, None])
        return rows

    def compute_output_spec(self, inputs: Any, segment_ids: Any, num_segments: Any) -> Any:
        """`(rows * num_segments, longest sentence)`."""
        return keras.KerasTensor((None, None), dtype="int32")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        config = super().get_config()
        config.pop("autocast", None)
        return config
