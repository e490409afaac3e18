"""`dsa-single`: the paper's encoder with a single dynamic self-attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsa_keras.encoders import dense_cnn, register_encoder
from dsa_keras.encoders.encoder import ATTENTION, SearchSpace

if TYPE_CHECKING:
    import keras

ITERATIONS = {"num_iterations": (1, 2, 3, 4)}


@register_encoder("dsa-single")
@dataclass(frozen=True)
class DsaSingle(dense_cnn.DenseCnnEncoder):
    """A CNN with dense connection, then dynamic self-attention (Algorithm 1).

    Attributes:
        num_iterations: r.
        stop_routing_gradient: whether the gradient stops at the routing scores.
    """

    spaces: ClassVar[Mapping[str, SearchSpace]] = {
        "small": {**dense_cnn.SMALL, "num_iterations": (1, 2, 3)},
        "paper": {**dense_cnn.PAPER, **ITERATIONS},
        "wide": {**dense_cnn.WIDE, "num_iterations": (1, 2, 3, 4, 5)},
    }

    num_iterations: int = 2
    stop_routing_gradient: bool = False

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        super().check()
        self.require_each(("num_iterations",), "at least 1")

    def attention(self) -> keras.Layer:
        """Makes the attention layer."""
        from dsa_keras.layers import DynamicSelfAttention

        return DynamicSelfAttention(
            self.units,
            num_attentions=self.num_attentions,
            num_iterations=self.num_iterations,
            stop_routing_gradient=self.stop_routing_gradient,
            name=ATTENTION,
        )
