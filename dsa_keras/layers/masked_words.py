"""What the layers that take words do with those that the mask hides."""

from __future__ import annotations

from typing import Any, Self

import keras

from dsa_keras.layers.checks import zero_masked


class MaskedWordsLayer(keras.layers.Layer):
    """Base of the layers that set masked words to zero before anything else.

    So a masked word may hold any value, NaN too, and none of it reaches a real word.
    """

    _trusts_masked_words = False

    def hide_masked(self, words: Any, mask: Any) -> Any:
        """Sets the words to zero where the mask is false; see also `trust_masked_words`."""
        return words if self._trusts_masked_words else zero_masked(words, mask)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the layer again, from a config of today or of when `finite_inputs` was in it."""
        return super().from_config({k: v for k, v in config.items() if k != "finite_inputs"})


def trust_masked_words(layer: MaskedWordsLayer) -> MaskedWordsLayer:
    """Saves a layer the pass over its words that sets the masked ones to zero.

    For layers that are fed by layers of this package: these give zeros or other small numbers at
    masked words, never NaN or infinity, and such numbers have no effect without the pass either.
    The layer is changed and returned. Neither its config nor a file says so: a copy makes the pass.

    Raises:
        ValueError: if the layer makes no such pass.
    """
    if not isinstance(layer, MaskedWordsLayer):
        raise ValueError(
            "`layer` must be a layer that sets masked words to zero, such as DenseConvBlock, "
            f"WordCompression or an attention layer. Received: layer={layer!r}"
        )
    layer._trusts_masked_words = True
    return layer
