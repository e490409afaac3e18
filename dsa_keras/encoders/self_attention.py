"""`self-attention`: the paper's CNN under a static self-attention, its baseline (Eq. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsa_keras.encoders import dense_cnn, register_encoder
from dsa_keras.encoders.encoder import ATTENTION, SearchSpace

if TYPE_CHECKING:
    import keras


@register_encoder("self-attention")
@dataclass(frozen=True)
class StaticSelfAttention(dense_cnn.DenseCnnEncoder):
    """A CNN with dense connection, then attention with a weight vector that is learnt."""

    spaces: ClassVar[Mapping[str, SearchSpace]] = {
        "small": dense_cnn.SMALL,
        "paper": dense_cnn.PAPER,
        "wide": dense_cnn.WIDE,
    }

    def attention(self) -> keras.Layer:
        """Makes the attention layer."""
        from dsa_keras.layers import SelfAttention

        return SelfAttention(self.units, num_attentions=self.num_attentions, name=ATTENTION)
