"""The base of the attention layers: call forms, settings of sub-layers, shape of the output."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.call_forms import PackedWords, PaddedWords, call_form
from dsa_keras.layers.checks import REGISTERED_PACKAGE, positive_integer, words_shape
from dsa_keras.layers.convolution import WordProduct
from dsa_keras.layers.initializers import HeDropout
from dsa_keras.layers.masked_words import MaskedWordsLayer


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class AttentionLayer(MaskedWordsLayer):
    """Base of `DynamicSelfAttention`, of `SelfAttention` and of an attention of your own.

    An attention layer weighs the words of a sentence and gives `num_attentions` vectors of `units`,
    concatenated (Eq. 7). A subclass writes `call`, and `build` if it has weights:

    1. `words_and_form` checks the call arguments. It returns the words, with zeros where they are
       masked, and their form: `PaddedWords`, a sentence per row, or `PackedWords`, several.
    2. The form computes what an attention needs per sentence: `arrange` splits the features among
       the attentions, `softmax` turns scores into weights, `weighted_sum` adds up the words,
       `inner_product` multiplies them with a vector of their sentence; what these three give is
       float32 at least. A layer written in these terms takes padded and packed words.
    3. `joined` turns the vectors into the output, and `form.weights_out` the weights, which `call`
       returns as well if `return_attention_scores` is True. That is all that `trace` needs.

    **Masking.** A masked word has a weight of exactly zero if the weights are the form's `softmax`.
    The output has no words axis, so no mask is passed on.

    Args:
        units: size of each attention's vector.
        num_attentions: number of attentions.
        negative_slope: of the LeakyReLU, for subclasses that have one.
        kernel_initializer: of the sub-layers that `dense` makes; None gives He normal.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Example:

    >>> @keras.saving.register_keras_serializable(package="my_package")
    ... class NormAttention(AttentionLayer):
    ...     def call(
    ...         self, inputs, mask=None, segment_ids=None, num_segments=None,
    ...         return_attention_scores=False,
    ...     ):
    ...         words, form = self.words_and_form(inputs, mask, segment_ids, num_segments)
    ...         words = form.arrange(words, self.num_attentions)
    ...         weights = form.softmax(keras.ops.sum(words**2, axis=-1))
    ...         vectors = self.joined(form, form.weighted_sum(weights, words))
    ...         return (vectors, form.weights_out(weights)) if return_attention_scores else vectors
    >>> traced = NormAttention(units=300).trace(keras.random.normal((2, 7, 300)))
    >>> traced["vectors"].shape, traced["attention_weights"].shape
    (TensorShape([2, 300]), TensorShape([2, 1, 1, 7]))
    """

    def __init__(
        self,
        units: int,
        num_attentions: int = 1,
        negative_slope: float = 0.01,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = positive_integer("units", units)
        self.num_attentions = positive_integer("num_attentions", num_attentions)
        self.negative_slope = negative_slope
        self.kernel_initializer = keras.initializers.get(kernel_initializer or HeDropout(0))

    def dense(
        self, units: int, name: str, kind: type[keras.layers.Dense] = WordProduct, **options: Any
    ) -> keras.layers.Dense:
        """Makes a sub-layer with the dtype of this layer and its own draw from the initializer."""
        return kind(
            units,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
            **options,
        )

    def words_and_form(
        self, words: Any, mask: Any, segment_ids: Any, num_segments: Any
    ) -> tuple[Any, PaddedWords | PackedWords]:
        """Checks the call arguments; returns the words, masked ones set to zero, and their form."""
        words_shape(self, words.shape)
        form = call_form(words, mask, segment_ids, num_segments)
        return self.hide_masked(words, form.flags), form

    def trace(self, inputs: Any, mask: Any = None) -> dict[str, Any]:
        """Calls the layer and returns, by name, its output and what led to it.

        A layer that attends in several iterations overrides this; see `DynamicSelfAttention`.

        Args:
            inputs: word vectors of shape `(batch, words, features)`.
            mask: bool, int or float, of shape `(batch, words)`; false where there is no word.

        Returns:
            `vectors`, the output, `(batch, num_attentions * units)`, and `attention_weights`,
            `(batch, iterations, attentions, words)`, of one iteration.
        """
        vectors, weights = self(inputs, mask=mask, return_attention_scores=True)
        return {"vectors": vectors, "attention_weights": ops.expand_dims(weights, 1)}

    def joined(self, form: PaddedWords | PackedWords, vectors: Any) -> Any:
        """Concatenates the vectors of a sentence's attentions (Eq. 7)."""
        vectors = form.vectors_out(vectors)
        shape = (*ops.shape(vectors)[:-2], self.num_attentions * self.units)
        return ops.cast(ops.reshape(vectors, shape), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Returns None: a sentence vector has no words axis, so no mask."""

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Traces the call, because the output depends on the arguments, not on the shape alone."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps `(batch, words, features)` to `(batch, num_attentions * units)`: padded words."""
        return (input_shape[0], self.num_attentions * self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        return {
            **super().get_config(),
            "units": self.units,
            "num_attentions": self.num_attentions,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
