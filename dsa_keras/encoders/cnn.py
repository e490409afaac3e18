"""`cnn`: convolutions pooled over the sentence (Kim, 2014)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dsa_keras.encoders import register_encoder
from dsa_keras.encoders.encoder import Encoder, SearchSpace

if TYPE_CHECKING:
    import keras

    from dsa_keras.config import Recipe


@register_encoder("cnn")
@dataclass(frozen=True)
class Cnn(Encoder):
    """Convolutions of several widths; the vector is each filter's largest value.

    Attributes:
        cnn_widths: words in the windows, a convolution for each.
        cnn_filters: filters of each convolution.
    """

    spaces: ClassVar[Mapping[str, SearchSpace]] = {"wide": {"cnn_filters": (50, 100, 200)}}

    cnn_widths: tuple[int, ...] = (3, 4, 5)
    cnn_filters: int = 100

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require("cnn_widths", min(self.cnn_widths) >= 1, "at least 1 each")
        self.require_each(("cnn_filters",), "at least 1")

    def layers(self) -> Sequence[keras.Layer]:
        """The convolutions."""
        from dsa_keras.layers import ConvMaxPooling

        return [ConvMaxPooling(self.cnn_widths, self.cnn_filters, name="pooling")]

    def encode(self, layers: Mapping[str, keras.Layer], words: Any, **packed: Any) -> Any:
        """The largest values."""
        return layers["pooling"](words, **packed)

    def recipe(self, base: Recipe) -> Recipe:
        """Kim trains the word vectors: "non-static" in the paper's Table 2."""
        return base.replace(train_embeddings=True)
