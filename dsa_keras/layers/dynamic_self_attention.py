"""Dynamic Self-Attention: Eq. 6-7 and Algorithm 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf
from keras import ops

from dsa_keras.layers.attention import AttentionLayer
from dsa_keras.layers.checks import REGISTERED_PACKAGE, positive_integer, words_shape


class RoutingTrace(NamedTuple):
    """What Algorithm 1 computed in each iteration, from the first to the last.

    Attributes:
        attention_weights: a, `(batch, iterations, attentions, words)`.
        weight_vectors: z, `(batch, iterations, attentions, units)`, or for packed words
            `(rows, iterations, segments, attentions, units)`. The last but one is the paper's
            dynamic weight vector (it decides the last attention weights), the last one is the
            output.
    """

    attention_weights: Any
    weight_vectors: Any


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class DynamicSelfAttention(AttentionLayer):
    """Attends to the words of a sentence with a weight vector that the sentence itself determines.

    Every word is projected for each of the m attentions (Eq. 6), then r iterations of Algorithm 1
    find the weights:

    ```
    x_ji = LeakyReLU(W_j x_i + b_j)                                   (Eq. 6)
    q_ij = 0
    repeat r times:
        a_ij = softmax over words i (q_ij)
        z_j  = tanh(sum_i a_ij x_ji)
        q_ij = q_ij + x_ji . z_j
    z = concat[z_1, ..., z_m]                                         (Eq. 7)
    ```

    The routing is a `tf.while_loop`, and the gradient flows through every iteration. The update of
    q after the last z would never be used and is not computed.

    **Masking.** A masked word has a weight of exactly zero in every iteration, and the weights of
    the real words of a sentence sum to 1, so the vector does not depend on padding. The vector of a
    sentence without words is zero. The output has no words axis, so no mask is passed on. Softmax
    and sums stay in float32 under mixed precision.

    **Packed words.** With `segment_ids` a row holds several sentences one after another: 1 marks
    the positions of the first sentence of the row, 2 those of the second and so on, and 0 marks
    padding (which may lie anywhere). The softmax is taken per sentence and there is one vector per
    sentence: `(rows, segments, num_attentions * units)`. The vector of a segment that does not
    occur is zero. Weights and results of the layer are the same for padded and packed words.

    Args:
        units: d_o, the size of each attention's vector.
        num_attentions: m, the number of attentions.
        num_iterations: r, the number of routing iterations. With 1 the vector is the tanh of the
            mean of the projected words.
        stop_routing_gradient: whether to stop the gradient through the routing scores q, as some
            capsule networks do; the paper does not.
        negative_slope: slope of the LeakyReLU of Eq. 6 for negative values.
        kernel_initializer: initializer of W; None gives He normal.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, d_c)`.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word.
        segment_ids: integers of shape `(batch, words)`; see **Packed words**.
        num_segments: number of segments per row in the output, an int or a scalar tensor, only with
            `segment_ids`. None counts them (XLA must be told). Segments beyond are ignored.
        return_attention_scores: whether to return `(vectors, weights)` with the weights of the last
            iteration, `(batch, num_attentions, words)`.
        return_trace: whether to return `(vectors, trace)` with the `RoutingTrace` of all
            iterations.

    Output shape:
        `(batch, num_attentions * units)`, or packed `(rows, segments, num_attentions * units)`.

    Example:

    >>> words = keras.random.normal((2, 7, 300))
    >>> mask = [[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0]]
    >>> layer = DynamicSelfAttention(600, num_iterations=2)
    >>> vectors, weights = layer(words, mask=mask, return_attention_scores=True)
    >>> vectors.shape, weights.shape
    (TensorShape([2, 600]), TensorShape([2, 1, 7]))
    >>> vectors, trace = layer(words, mask=mask, return_trace=True)
    >>> trace.attention_weights.shape, trace.weight_vectors.shape
    (TensorShape([2, 2, 1, 7]), TensorShape([2, 2, 1, 600]))

    References:
        Yoon, Lee and Lee, [Dynamic Self-Attention](https://arxiv.org/abs/1808.07383), Section 3.2.
    """

    def __init__(
        self,
        units: int,
        num_attentions: int = 1,
        num_iterations: int = 2,
        stop_routing_gradient: bool = False,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, num_attentions, negative_slope, kernel_initializer, **kwargs)
        self.num_iterations = positive_integer("num_iterations", num_iterations)
        self.stop_routing_gradient = stop_routing_gradient
        self._projection = self.dense(self.num_attentions * self.units, "projection")

    def build(self, input_shape: Any) -> None:
        """Creates W and b of Eq. 6."""
        self._projection.build(words_shape(self, input_shape))

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        segment_ids: Any = None,
        num_segments: Any = None,
        return_attention_scores: bool = False,
        return_trace: bool = False,
    ) -> Any:
        """Computes the sentence vectors; see the class."""
        words, form = self.words_and_form(inputs, mask, segment_ids, num_segments)
        projected = ops.leaky_relu(self._projection(words), self.negative_slope)  # Eq. 6
        weights, vectors, trace = self._route(
            form.arrange(projected, self.num_attentions), form, return_trace
        )
        sentence = self.joined(form, vectors)  # Eq. 7
        if return_trace:
            return sentence, trace
        return (sentence, form.weights_out(weights)) if return_attention_scores else sentence

    def trace(self, inputs: Any, mask: Any = None) -> dict[str, Any]:
        """Calls the layer and returns, by name, its output and what each iteration computed.

        Args:
            inputs: word vectors of shape `(batch, words, d_c)`.
            mask: bool, int or float, of shape `(batch, words)`; false where there is no word.

        Returns:
            `vectors`, the output, `(batch, num_attentions * units)`, and the `attention_weights`
            and `weight_vectors` of `RoutingTrace`.
        """
        vectors, trace = self(inputs, mask=mask, return_trace=True)
        return {"vectors": vectors, **trace._asdict()}

    def _route(self, words: Any, form: Any, traced: bool) -> tuple[Any, Any, RoutingTrace | None]:
        """Algorithm 1; its first iteration (q = 0) is before the loop, so no update is in vain."""

        def attend(scores: Any) -> tuple[Any, Any]:
            weights = form.softmax(scores)
            return weights, tf.tanh(form.weighted_sum(weights, words))

        def iteration(
            number: Any, scores: Any, weights: Any, vectors: Any, *record: Any
        ) -> tuple[Any, ...]:
            agreement = form.inner_product(words, vectors)
            if self.stop_routing_gradient:
                agreement = tf.stop_gradient(agreement)
            scores = scores + agreement
            before = vectors.shape
            weights, vectors = attend(scores)
            # The number of packed sentences is a constant outside the loop, but not inside it.
            vectors.set_shape(before)
            if traced:
                record = (record[0].write(number, weights), record[1].write(number, vectors))
            return (number + 1, scores, weights, vectors, *record)

        exact = keras.backend.result_type(words.dtype.name, "float32")
        scores = tf.zeros(tf.shape(words)[:-1], exact)
        scores.set_shape(words.shape[:-1])
        weights, vectors = attend(scores)
        record: Any = ()
        if traced:
            record = tuple(
                tf.TensorArray(exact, size=self.num_iterations, element_shape=value.shape).write(
                    0, value
                )
                for value in (weights, vectors)
            )
        if self.num_iterations > 1:
            _, _, weights, vectors, *record = tf.while_loop(
                lambda *_: True,
                iteration,
                (1, scores, weights, vectors, *record),
                # XLA can only differentiate a loop whose length it knows, and is not zero.
                maximum_iterations=self.num_iterations - 1,
            )
        if not traced:
            return weights, vectors, None
        return weights, vectors, self._trace(form, *(one.stack() for one in record))

    def _trace(self, form: Any, weights: Any, vectors: Any) -> RoutingTrace:
        """Stacks the records of the iterations along an axis after the batch axis."""
        steps = range(self.num_iterations)
        return RoutingTrace(
            tf.stack([form.weights_out(weights[step]) for step in steps], axis=1),
            tf.stack([form.vectors_out(vectors[step]) for step in steps], axis=1),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "num_iterations": self.num_iterations,
            "stop_routing_gradient": self.stop_routing_gradient,
        }
