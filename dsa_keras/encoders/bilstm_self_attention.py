"""`bilstm-self-attention`: static self-attention on the states of a bidirectional LSTM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dsa_keras.encoders import register_encoder
from dsa_keras.encoders.bilstm import BiLstm
from dsa_keras.encoders.encoder import ATTENTION

if TYPE_CHECKING:
    import keras


@register_encoder("bilstm-self-attention")
@dataclass(frozen=True)
class BiLstmSelfAttention(BiLstm):
    """A bidirectional LSTM, then attention with a weight vector that is learnt."""

    attends: ClassVar[bool] = True

    def layers(self) -> Sequence[keras.Layer]:
        """The LSTM and the attention."""
        from dsa_keras.layers import SelfAttention
        from dsa_keras.layers.masked_words import trust_masked_words

        bilstm = self._bilstm(return_sequences=True)
        attention = SelfAttention(2 * self.lstm_units, project=False, name=ATTENTION)
        return [bilstm, trust_masked_words(attention)]

    def encode(self, layers: Mapping[str, keras.Layer], words: Any, **packed: Any) -> Any:
        """The states of the LSTM, attended to."""
        return layers[ATTENTION](super().encode(layers, words, **packed), **packed)
