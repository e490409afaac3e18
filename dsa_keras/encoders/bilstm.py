"""`bilstm`: the last states of a bidirectional LSTM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dsa_keras.encoders import register_encoder
from dsa_keras.encoders.encoder import Encoder, SearchSpace

if TYPE_CHECKING:
    import keras


@register_encoder("bilstm")
@dataclass(frozen=True)
class BiLstm(Encoder):
    """A bidirectional LSTM; the vector is the last state of each direction.

    Attributes:
        lstm_units: units of the LSTM in each direction.
    """

    # The steps depend on the lengths of the sentences.
    compiles: ClassVar[bool] = False
    spaces: ClassVar[Mapping[str, SearchSpace]] = {"wide": {"lstm_units": (100, 200, 300, 600)}}

    lstm_units: int = 300

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require_each(("lstm_units",), "at least 1")

    def layers(self) -> Sequence[keras.Layer]:
        """The LSTM."""
        return [self._bilstm(return_sequences=False)]

    def encode(self, layers: Mapping[str, keras.Layer], words: Any, **packed: Any) -> Any:
        """The states of the LSTM."""
        from dsa_keras.layers import PackedBiLSTM

        bilstm = layers["bilstm"]
        if packed:
            bilstm = PackedBiLSTM(bilstm, name="packed_bilstm")
        return bilstm(words, **packed)

    def small(self) -> Self:
        """Half the units."""
        return self.replace(lstm_units=150)

    def _bilstm(self, *, return_sequences: bool) -> keras.Layer:
        import keras

        lstm = keras.layers.LSTM(self.lstm_units, return_sequences=return_sequences, name="lstm")
        return keras.layers.Bidirectional(lstm, name="bilstm")
