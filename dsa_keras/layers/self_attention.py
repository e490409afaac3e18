"""Static self-attention, the paper's baseline: Eq. 1."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.attention import AttentionLayer
from dsa_keras.layers.checks import REGISTERED_PACKAGE, words_shape


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class SelfAttention(AttentionLayer):
    """Attends to words with a learnt weight vector, the same for every sentence.

    ```
    a = Softmax(v^T Tanh(W X))                 (Eq. 1)
    s = sum_i a_i x_i
    ```

    As in the paper's baseline, X are the words projected to `units` with LeakyReLU, as in Eq. 6, W
    has a bias, and the sentence vector is the weighted sum of the projected words.

    **Masking.** A masked word has a weight of exactly zero, the weights of the real words sum to 1.
    A sentence with no word gives the zero vector. The softmax stays in float32 under mixed
    precision. Packed words (`segment_ids`) are taken as by `DynamicSelfAttention`.

    Args:
        units: size of the projected words, and of each attention's vector.
        num_attentions: number of weight vectors v; the vectors they give are concatenated.
        project: False attends to the inputs as they are, which must have `units` features (used on
            BiLSTM states).
        negative_slope: of the LeakyReLU of the projection.
        kernel_initializer: of the projection, W and v; None gives He normal.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        inputs: words, `(batch, words, features)`.
        mask: `(batch, words)`, bool, int or float; false where there is no word.
        segment_ids: `(batch, words)` for packed words; see `DynamicSelfAttention`.
        num_segments: with `segment_ids`, the number of segments per row in the output.
        return_attention_scores: True gives `(vectors, weights)` with weights `(batch,
            num_attentions, words)`.

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
                "`units` must equal the input's features with `project=False`: "
                f"{self.units} against {features}."
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
        """Returns the arguments that make this layer again."""
        return {**super().get_config(), "project": self.project}
