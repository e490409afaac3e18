"""What the paper's encoders share: CNNs with dense connection, compression, then an attention."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from dsa_keras.encoders.encoder import ATTENTION, Encoder, SearchSpace

if TYPE_CHECKING:
    import keras

PAPER: SearchSpace = {
    "units": (150, 300, 600),
    "kernel_sizes": ((3,), (3, 5), (3, 5, 7)),
    "num_dense_layers": (2, 3, 4),
    "dropout": (0.1, 0.2, 0.3),
}
"""The paper's choices among their neighbours."""

WIDE: SearchSpace = {
    "units": (100, 150, 300, 600, 900),
    "kernel_sizes": ((1,), (3,), (5,), (3, 5), (3, 5, 7)),
    "num_dense_layers": (1, 2, 3, 4, 5, 6),
    "dropout": (0.0, 0.1, 0.2, 0.3, 0.4),
}

SMALL: SearchSpace = {"units": (150, 300, 600), "num_dense_layers": (2, 4)}


@dataclass(frozen=True)
class DenseCnnEncoder(Encoder):
    """Words encoded with their neighbours (Eq. 2-5), then attended to.

    Attributes:
        kernel_sizes: k_1 and k_2, a `DenseConvBlock` for each.
        first_filters: d_1.
        filters: d_l.
        num_dense_layers: dense layers after h^1: 4 gives the parameters of Table 1, 3 is the
            appendix read literally.
        compressed_units: d_c.
        dropout: rate in every h.
        units: d_o, size of each attention's vector.
        num_attentions: m.
        initial_scale: He weights times the square root of the dropout `"rate"`, of the `"keep"`
            probability, or `"none"`.
    """

    attends: ClassVar[bool] = True
    has_word_tables: ClassVar[bool] = True

    kernel_sizes: tuple[int, ...] = (3, 5)
    first_filters: int = 150
    filters: int = 75
    num_dense_layers: int = 4
    compressed_units: int = 300
    dropout: float = 0.2
    units: int = 600
    num_attentions: int = 1
    initial_scale: Literal["rate", "keep", "none"] = "rate"

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        odd = all(size % 2 == 1 and size > 0 for size in self.kernel_sizes)
        self.require("kernel_sizes", odd, "odd numbers")
        self.require_each(("dropout",), "in [0, 1)")
        sizes = ("first_filters", "filters", "num_dense_layers", "compressed_units")
        self.require_each((*sizes, "units", "num_attentions"), "at least 1")

    @abc.abstractmethod
    def attention(self) -> keras.Layer:
        """Makes the attention layer, named `attention`."""

    def layers(self) -> Sequence[keras.Layer]:
        """The blocks, the compression and the attention."""
        from dsa_keras.layers import DenseConvBlock, HeDropout, WordCompression
        from dsa_keras.layers.masked_words import trust_masked_words

        initializer = HeDropout(self.dropout, self.initial_scale)
        blocks = [
            DenseConvBlock(
                kernel_size,
                filters=self.filters,
                first_filters=self.first_filters,
                num_layers=self.num_dense_layers,
                dropout=self.dropout,
                kernel_initializer=initializer.clone(),
                name=f"dense_conv_{number}",
            )
            for number, kernel_size in enumerate(self.kernel_sizes, start=1)
        ]
        compression = WordCompression(
            self.compressed_units,
            dropout=self.dropout,
            kernel_initializer=initializer.clone(),
            name="compression",
        )
        return [trust_masked_words(one) for one in (*blocks, compression, self.attention())]

    def encode(self, layers: Mapping[str, keras.Layer], words: Any, **packed: Any) -> Any:
        """Eq. 2-5 on all words, then the attention."""
        neighbours = {"segment_ids": packed["segment_ids"]} if packed else {}
        encoded = [block(words, **neighbours) for block in self._blocks(layers)]
        return layers[ATTENTION](layers["compression"]([*encoded, words]), **packed)

    def word_tables(self, embedding: keras.Layer, layers: Mapping[str, keras.Layer]) -> Any:
        """Encodes many sentences by tables of their words."""
        from dsa_keras.layers.word_tables import TabledEncoder

        blocks = self._blocks(layers)
        return TabledEncoder(embedding, blocks, layers["compression"], layers[ATTENTION])

    def small(self) -> Self:
        """Half the units and less dropout."""
        return self.replace(
            first_filters=75,
            filters=40,
            compressed_units=150,
            dropout=0.1,
            units=self.units // 2,
        )

    def _blocks(self, layers: Mapping[str, keras.Layer]) -> list[keras.Layer]:
        return [layers[f"dense_conv_{n}"] for n in range(1, len(self.kernel_sizes) + 1)]
