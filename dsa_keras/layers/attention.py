"""What the attention layers share: call forms, settings of sub-layers, shape of the output."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.call_forms import PackedWords, PaddedWords, call_form
from dsa_keras.layers.checks import positive_integer, words_shape
from dsa_keras.layers.convolution import WordProduct
from dsa_keras.layers.initializers import HeDropout
from dsa_keras.layers.masked_words import MaskedWordsLayer


class AttentionLayer(MaskedWordsLayer):
    """Base of the layers that give a sentence `num_attentions` vectors of `units`."""

    def __init__(
        self,
        units: int,
        num_attentions: int,
        negative_slope: float,
        kernel_initializer: Any,
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
        """A sub-layer with this layer's dtype and a draw of its own from the initializer."""
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
        """Checks the call arguments; the words, finite where there is none, and their form."""
        words_shape(self, words.shape)
        form = call_form(words, mask, segment_ids, num_segments)
        return self.hide_masked(words, form.flags), form

    def joined(self, form: PaddedWords | PackedWords, vectors: Any) -> Any:
        """Concatenates the vectors of a sentence's attentions (Eq. 7)."""
        vectors = form.vectors_out(vectors)
        shape = (*ops.shape(vectors)[:-2], self.num_attentions * self.units)
        return ops.cast(ops.reshape(vectors, shape), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """A sentence vector has no words, so no mask."""

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Traces the call: what comes out depends on the arguments, not on the shape alone."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """`(batch, words, features)` to `(batch, num_attentions * units)`, for padded words."""
        return (input_shape[0], self.num_attentions * self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this layer again."""
        return {
            **super().get_config(),
            "units": self.units,
            "num_attentions": self.num_attentions,
            "negative_slope": self.negative_slope,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
