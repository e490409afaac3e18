"""Static self-attention, the paper's baseline: Eq. 1."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.attention import AttentionLayer
from dsa_keras.layers.checks import REGISTERED_PACKAGE, words_shape


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class SelfAttention(AttentionLayer):
    """Attends to the words with a learned weight vector, the same for every sentence.

    ```
    a = Softmax(v^T Tanh(W X))                 (Eq. 1)
    s = sum_i a_i x_i
    ```

    As in the paper's baseline, X are the words projected to `units` with LeakyReLU, as in Eq. 6, W
    has a bias, and the sentence vector is the weighted sum of the projected words.

    **Masking.** A masked word has a weight of exactly zero, and the weights of the real words of a
    sentence sum to 1. The vector of a sentence without words is zero. The softmax stays in float32
    under mixed precision. The output has no words axis, so no mask is passed on.

    **Packed words.** With `segment_ids` a row holds several sentences one after another; see
    `DynamicSelfAttention`.

    Args:
        units: size of the projected words and of each attention's vector.
        num_attentions: number of weight vectors v; the sentence vectors they give are concatenated.
        project: whether to project the words. False attends to the inputs as they are, which must
            then have `units` features (used on BiLSTM states).
        negative_slope: slope of the LeakyReLU of the projection for negative values.
        kernel_initializer: initializer of the projection, W and v; None gives He normal.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word.
        segment_ids: integers of shape `(batch, words)`; see **Packed words**.
        num_segments: number of segments per row in the output, only with `segment_ids`; see
            `DynamicSelfAttention`.
        return_attention_scores: whether to return `(vectors, weights)` with weights of shape
            `(batch, num_attentions, words)`.

    Output shape:
        `(batch, num_attentions * units)`, or packed `(rows, segments, num_attentions * units)`.

    Example:

    >>> SelfAttention(600)(keras.random.normal((2, 7, 300))).shape
    TensorShape([2, 600])
    """

    def __init__(
        self,
        units: int,
        num_attentions: int = 1,
        project: bool = True,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, num_attentions, negative_slope, kernel_initializer, **kwargs)
        self.project = project
        self._projection = self.dense(self.units, "projection") if project else None
        self._hidden = self.dense(self.units, "hidden")
        self._weight_vectors = self.dense(
            self.num_attentions, "weight_vectors", keras.layers.Dense, use_bias=False
        )

    def build(self, input_shape: Any) -> None:
        """Creates the projection, W and v."""
        batch, words, features = words_shape(self, input_shape)
        if self._projection is not None:
            self._projection.build(input_shape)
        elif features != self.units:
            raise ValueError(
                "With `project=False`, `units` must equal the number of input features. "
                f"Received: units={self.units}, shape={tuple(input_shape)}"
            )
        self._hidden.build((batch, words, self.units))
        self._weight_vectors.build((batch, words, self.units))

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        segment_ids: Any = None,
        num_segments: Any = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Computes the sentence vectors; see the class."""
        x, form = self.words_and_form(inputs, mask, segment_ids, num_segments)
        if self._projection is not None:
            x = ops.leaky_relu(self._projection(x), self.negative_slope)
        scores = self._weight_vectors(ops.tanh(self._hidden(x)))
        scores = ops.squeeze(form.arrange(scores, self.num_attentions), -1)
        weights = form.softmax(scores)
        # All attentions weigh the same words.
        sentence = self.joined(form, form.weighted_sum(weights, form.arrange(x, 1)))
        return (sentence, form.weights_out(weights)) if return_attention_scores else sentence

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {**super().get_config(), "project": self.project}
