"""A wrapper that makes an attention layer return what it attends to."""

from __future__ import annotations

from typing import Any, Self

import keras

from dsa_keras.layers.attention import AttentionLayer
from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class TracedAttention(keras.layers.Layer):
    """Wraps an attention layer, sharing its weights, and returns by name what it attends to.

    A functional model needs the wrapper: Keras assumes that a shared layer has as many outputs in
    its second call as it had in its first.

    **Masking.** The mask is given to the wrapped layer; none is passed on.

    Args:
        attention: a `DynamicSelfAttention`, a `SelfAttention` or another layer with a method
            `trace`, as every `AttentionLayer` has.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`.
        mask: bool, int or float, of shape `(batch, words)`; false where there is no word.

    Output shape:
        A dictionary: `vectors`, `(batch, num_attentions * units)`; `attention_weights`, `(batch,
        iterations, attentions, words)`; for dynamic self-attention also `weight_vectors`, `(batch,
        iterations, attentions, units)`. Static self-attention has one iteration.

    Example:

    >>> traced = TracedAttention(DynamicSelfAttention(600, num_iterations=3))
    >>> traced(keras.random.normal((2, 7, 300)))["attention_weights"].shape
    TensorShape([2, 3, 1, 7])
    """

    def __init__(self, attention: AttentionLayer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(attention, keras.Layer) or not hasattr(attention, "trace"):
            raise ValueError(
                "`attention` must be a layer with a method `trace`, such as DynamicSelfAttention "
                f"or SelfAttention. Received: attention={attention!r}"
            )
        self.supports_masking = True
        self.attention = attention

    def build(self, input_shape: Any) -> None:
        """Builds the wrapped layer if it is not built yet."""
        if not self.attention.built:
            self.attention.build(input_shape)

    def call(self, inputs: Any, mask: Any = None) -> dict[str, Any]:
        """Computes the vectors and what led to them; see the class."""
        return self.attention.trace(inputs, mask=mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: a sentence vector has no words axis, so no mask."""

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        attention = keras.saving.serialize_keras_object(self.attention)
        return {**super().get_config(), "attention": attention}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the layer, and the one it wraps, from a config."""
        attention = keras.saving.deserialize_keras_object(config["attention"])
        return cls(**{**config, "attention": attention})
