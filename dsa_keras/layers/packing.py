"""From packed words to padded ones, and from packed sentences to the examples of a batch."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE
from dsa_keras.layers.words import PackedWords


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class UnpackWords(keras.layers.Layer):
    """Lays packed word ids out with one sentence per row.

    For encoders that cannot read packed words, such as the CNN.

    **Masking.** Positions without a word hold id 0, in and out.

    Call arguments:
        inputs: packed word ids, `(rows, words)`.
        segment_ids: `(rows, words)`: 1 for the words of a row's first sentence, 2 for the second, 0
            for none.
        num_segments: sentences per row, an int or a scalar tensor.

    Output shape:
        `(rows * num_segments, longest sentence, at least 1)`.

    Example:

    >>> segment_ids = np.array([[1, 1, 0, 2]])
    >>> UnpackWords()(np.array([[7, 8, 0, 9]]), segment_ids=segment_ids, num_segments=2)
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[7, 8],
           [9, 0]], dtype=int32)>
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)

    def call(self, inputs: Any, segment_ids: Any, num_segments: Any) -> Any:
        """Lays the ids out; see the class."""
        ids, segment_ids = tf.cast(inputs, tf.int32), tf.cast(segment_ids, tf.int32)
        form = PackedWords(ids, segment_ids, num_segments)
        place = form.places_by_sentence()
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.gather(tf.reshape(ids, [-1]), place),
            tf.gather(form.sentence, place),
            nrows=form.all_segments,
            validate=False,
        )
        padded = ragged.to_tensor()
        no_word = tf.cast(tf.equal(tf.shape(padded)[1], 0), tf.int32)
        return tf.pad(padded, [[0, 0], [0, no_word]])

    def compute_output_spec(self, inputs: Any, segment_ids: Any, num_segments: Any) -> Any:
        """Neither the number of sentences nor the longest is known before."""
        return keras.KerasTensor((None, None), dtype="int32")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        return {key: value for key, value in super().get_config().items() if key != "autocast"}


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class GroupByRow(keras.layers.Layer):
    """Groups the vectors of unpacked sentences by the row they were packed in.

    **Masking.** Sentence vectors carry no mask; none is used or passed on.

    Call arguments:
        inputs: sentence vectors, `(rows * segments, units)`.
        segment_ids: `(rows, words)`, as given to `UnpackWords`.

    Output shape:
        `(rows, segments, units)`.
    """

    def call(self, inputs: Any, segment_ids: Any) -> Any:
        """Groups the vectors; see the class."""
        return tf.reshape(inputs, [tf.shape(segment_ids)[0], -1, inputs.shape[-1]])

    def compute_output_spec(self, inputs: Any, segment_ids: Any) -> Any:
        """`(rows, segments, units)`, of which only the last is always known."""
        return keras.KerasTensor((segment_ids.shape[0], None, inputs.shape[-1]), dtype=inputs.dtype)


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class GatherSentences(keras.layers.Layer):
    """Picks the sentence vectors of each example from those of all distinct sentences.

    **Masking.** Sentence vectors carry no mask; none is used or passed on.

    Call arguments:
        inputs: sentence vectors, `(sentences, units)` or `(rows, segments, units)`.
        index: whole numbers, `(batch,)` or `(batch, 2)` for pairs: which sentence, counted from 0
            through all rows.

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
        """`(batch, units)` or `(batch, 2, units)`, in the dtype of the layer."""
        return keras.KerasTensor((*index.shape, inputs.shape[-1]), dtype=self.compute_dtype)
