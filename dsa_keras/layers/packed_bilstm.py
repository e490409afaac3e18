"""A bidirectional LSTM on packed words.

Keras goes through as many steps as the longest sentence of a batch has words, with all sentences in
every step. Here the sentences are sorted from the longest to the shortest, and a step computes only
those that still have a word: nothing is computed for padding. The products with the inputs, which
need not wait for a step, are one product for all words.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import keras
import tensorflow as tf
from keras import ops

from dsa_keras.layers.call_forms import PackedWords, call_form
from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class PackedBiLSTM(keras.layers.Layer):
    """Wraps a bidirectional LSTM of Keras, sharing its weights, and runs it on packed words.

    **Masking.** A masked word belongs to no sentence; the mask is passed on if the output is the
    states of words. The vector of a sentence without words is zero.

    Args:
        bilstm: `keras.layers.Bidirectional` around a `keras.layers.LSTM` without dropout, with
            `merge_mode="concat"`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: packed word vectors of shape `(rows, words, features)`.
        mask: bool, int or float, of shape `(rows, words)`; false where there is no word.
        segment_ids: integers of shape `(rows, words)`; see `DynamicSelfAttention`.
        num_segments: number of segments per row, an int or a scalar tensor.

    Output shape:
        `(rows, words, 2 * units)` if the wrapped layer returns sequences, otherwise the last states
        of each sentence, `(rows, segments, 2 * units)`.

    Example:

    >>> bilstm = keras.layers.Bidirectional(keras.layers.LSTM(300))
    >>> segment_ids = np.array([[1, 1, 2, 0]])
    >>> words = keras.random.normal((1, 4, 100))
    >>> PackedBiLSTM(bilstm)(words, segment_ids=segment_ids, num_segments=2).shape
    TensorShape([1, 2, 600])
    """

    def __init__(self, bilstm: keras.layers.Bidirectional, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        lstm = getattr(bilstm, "forward_layer", None)
        if not isinstance(lstm, keras.layers.LSTM) or bilstm.merge_mode != "concat":
            raise ValueError(
                "`bilstm` must be a keras.layers.Bidirectional around an LSTM, with "
                f"merge_mode='concat'. Received: bilstm={bilstm!r}"
            )
        if lstm.dropout or lstm.recurrent_dropout:
            raise ValueError(
                "`bilstm` must not have dropout; apply it to the words before. Received: "
                f"dropout={lstm.dropout}, recurrent_dropout={lstm.recurrent_dropout}"
            )
        self.supports_masking = True
        self.bilstm = bilstm

    def build(self, input_shape: Any) -> None:
        """Builds the wrapped layer if it is not built yet."""
        if not self.bilstm.built:
            self.bilstm.build(input_shape)

    def call(
        self, inputs: Any, mask: Any = None, segment_ids: Any = None, num_segments: Any = None
    ) -> Any:
        """Computes the states; see the class."""
        form = call_form(inputs, mask, segment_ids, num_segments)
        if not isinstance(form, PackedWords):
            raise ValueError(
                "`segment_ids` is required; for padded words, call `bilstm` itself. "
                "Received: segment_ids=None"
            )
        words = tf.reshape(inputs, [-1, inputs.shape[-1]])
        steps = _steps(form)
        outputs = tf.concat(
            [
                self._direction(self.bilstm.forward_layer.cell, words, form, steps, False),
                self._direction(self.bilstm.backward_layer.cell, words, form, steps, True),
            ],
            axis=-1,
        )
        second = form.length if self.bilstm.return_sequences else form.num_segments
        return tf.reshape(outputs, [form.rows, second, outputs.shape[-1]])

    def _direction(
        self, cell: keras.layers.LSTMCell, words: Any, form: PackedWords, steps: _Steps, back: bool
    ) -> Any:
        """One direction: the states at all places, or the last states of all sentences."""
        left = steps.length - 1 - steps.position
        number, left = (left, steps.position) if back else (steps.position, left)
        order = tf.argsort(number * tf.cast(form.all_segments, tf.int64) + steps.rank)
        place = tf.gather(steps.place, order)
        states = self._states(cell, tf.gather(words, place), steps.counts)
        if self.bilstm.return_sequences:
            shape = [tf.shape(words)[0], cell.units]
            return tf.scatter_nd(tf.expand_dims(place, 1), states, shape)
        last = tf.where(tf.gather(left, order) == 0)[:, 0]
        sentence = tf.gather(form.sentence, tf.gather(place, last))
        shape = [form.all_segments, cell.units]
        return tf.scatter_nd(tf.expand_dims(sentence, 1), tf.gather(states, last), shape)

    def _states(self, cell: keras.layers.LSTMCell, words: Any, counts: Any) -> Any:
        """The states of the words, which come step by step, `counts` of them in each."""
        units, dtype = cell.units, self.compute_dtype
        kernel, recurrent = (ops.cast(one, dtype) for one in (cell.kernel, cell.recurrent_kernel))
        projected = tf.matmul(words, kernel)
        if cell.bias is not None:
            projected += ops.cast(cell.bias, dtype)
        size = tf.size(counts)
        shape = tf.TensorShape([None, 4 * units])
        inputs = tf.TensorArray(dtype, size, element_shape=shape, infer_shape=False)
        inputs = inputs.split(projected, counts)
        shape = tf.TensorShape([None, units])
        states = tf.TensorArray(dtype, size, element_shape=shape, infer_shape=False)

        def step(number: Any, hidden: Any, carry: Any, states: Any) -> tuple[Any, ...]:
            word = inputs.read(number)
            alive = tf.shape(word)[0]
            gates = tf.split(word + tf.matmul(hidden[:alive], recurrent), 4, axis=-1)
            enter, keep, leave = (cell.recurrent_activation(gates[one]) for one in (0, 1, 3))
            carry = keep * carry[:alive] + enter * cell.activation(gates[2])
            hidden = leave * cell.activation(carry)
            return number + 1, hidden, carry, states.write(number, hidden)

        start = tf.zeros([tf.reduce_sum(counts[:1]), units], dtype)
        *_, states = tf.while_loop(
            lambda number, *_: number < size,
            step,
            (tf.constant(0), start, start, states),
            shape_invariants=(tf.TensorShape([]), shape, shape, tf.TensorShape(None)),
        )
        return states.concat()

    def compute_output_spec(
        self, inputs: Any, mask: Any = None, segment_ids: Any = None, num_segments: Any = None
    ) -> Any:
        """Returns the states of words or of sentences, in the dtype of the layer."""
        second = inputs.shape[1] if self.bilstm.return_sequences else None
        shape = (inputs.shape[0], second, 2 * self.bilstm.forward_layer.units)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None, **_: Any) -> Any:
        """Returns the mask for the states of words, None for sentences."""
        return mask if self.bilstm.return_sequences else None

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        bilstm = keras.saving.serialize_keras_object(self.bilstm)
        return {**super().get_config(), "bilstm": bilstm}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the layer, and the one it wraps, from a config."""
        bilstm = keras.saving.deserialize_keras_object(config["bilstm"])
        return cls(**{**config, "bilstm": bilstm})


class _Steps(NamedTuple):
    """The order in which the words are processed; tensors have one entry per word, except `counts`.

    Attributes:
        place: place of the word in the flat row of all words.
        position: position of the word in its sentence.
        length: length of its sentence.
        rank: rank of its sentence, the longest first.
        counts: for each step, how many sentences have a word.
    """

    place: Any
    position: Any
    length: Any
    rank: Any
    counts: Any


def _steps(form: PackedWords) -> _Steps:
    lengths = tf.cast(form.lengths(), tf.int64)
    place = form.places_by_sentence()[: tf.reduce_sum(lengths)]
    sentence = tf.gather(form.sentence, place)
    starts = tf.cumsum(lengths, exclusive=True)
    position = tf.range(tf.size(place, tf.int64)) - tf.gather(starts, sentence)
    longest_first = tf.argsort(lengths, direction="DESCENDING", stable=True)
    rank = tf.cast(tf.argsort(longest_first), tf.int64)
    counts = tf.math.bincount(tf.cast(position, tf.int32))
    return _Steps(place, position, tf.gather(lengths, sentence), tf.gather(rank, sentence), counts)
