"""What every encoder is: settings, layers, and a way from words to the vector of a sentence."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dsa_keras.settings import Settings

if TYPE_CHECKING:
    import keras

    from dsa_keras.config import Recipe

ATTENTION = "attention"
"""The name of the attention layer in encoders that attend."""


@dataclass(frozen=True)
class LogRange:
    """Any number between two others, drawn evenly on the scale of its logarithm."""

    low: float
    high: float


Value = int | float | str | tuple[int, ...]
SearchSpace = Mapping[str, tuple[Value, ...] | LogRange]
"""What a search tries: values by hyper-parameter."""


@dataclass(frozen=True)
class Encoder(Settings, abc.ABC):
    """Turns the words of a sentence into its vector.

    An encoder is a frozen dataclass of its hyper-parameters. It makes its layers once, and applies
    the same layers to words in two call forms: padded, a sentence in each row, and packed, many
    sentences one after another in one row (the form that trains). Layers are found by name, and
    their names are part of the format of a run folder.

    A sentence must have the same vector alone, in any batch and under any padding, and a sentence
    without words a finite one. `tests/encoder_checks.py` checks that of every registered encoder.
    """

    name: ClassVar[str] = ""
    attends: ClassVar[bool] = False
    """Whether there are attention weights to look at: `encode` ends with the layer `attention`."""
    packs: ClassVar[bool] = True
    """Whether `encode` takes packed words. For an encoder that does not, ids are unpacked first."""
    compiles: ClassVar[bool] = True
    """Whether XLA can compile the training, if words are packed."""
    has_word_tables: ClassVar[bool] = False
    """Whether `word_tables` computes what depends on a word alone once for each word."""
    spaces: ClassVar[Mapping[str, SearchSpace]] = {}
    """The rows of search spaces, by the name of the space; see `dsa_keras.tuning`."""

    @abc.abstractmethod
    def layers(self) -> Sequence[keras.Layer]:
        """Makes the layers, each with a name of its own. Called once for each model."""

    @abc.abstractmethod
    def encode(self, layers: Mapping[str, keras.Layer], words: Any, **packed: Any) -> Any:
        """Applies the layers.

        Args:
            layers: the layers by name.
            words: the vectors of the words, `(batch, words, features)`, with a Keras mask.
            **packed: nothing for padded words. For packed ones, if the encoder takes them,
                `segment_ids` and `num_segments` as in `DynamicSelfAttention`.

        Returns:
            `(batch, units)`, or for packed words `(rows, segments, units)`.
        """

    def encode_ids(
        self,
        layers: Mapping[str, keras.Layer],
        embedding: keras.Layer,
        word_ids: Any,
        **packed: Any,
    ) -> Any:
        """Goes from word ids to sentence vectors.

        An encoder that wants more of a word than its vector, such as a weight of its own, does so
        here; for others it is `encode` on the vectors.
        """
        return self.encode(layers, embedding(word_ids), **packed)

    def trace(
        self, layers: Mapping[str, keras.Layer], embedding: keras.Layer, word_ids: Any
    ) -> dict[str, Any]:
        """The same, keeping what is attended to; see `AttentionLayer.trace`."""
        from dsa_keras.layers import TracedAttention

        traced = TracedAttention(layers[ATTENTION], name="traced_attention")
        return self.encode_ids({**layers, ATTENTION: traced}, embedding, word_ids)

    def word_tables(self, embedding: keras.Layer, layers: Mapping[str, keras.Layer]) -> Any:
        """What encodes many sentences by tables of their words; see `TabledEncoder`."""
        raise TypeError(f"{self.name} has no word tables")

    def small(self) -> Self:
        """The same encoder for small data: fewer units, less dropout."""
        return self

    def recipe(self, base: Recipe) -> Recipe:
        """How this encoder is trained, where that differs from what other encoders get."""
        return base

    def to_json(self) -> dict[str, Any]:
        """Its name and its settings, ready for JSON."""
        return {"name": self.name, **self.to_dict()}
