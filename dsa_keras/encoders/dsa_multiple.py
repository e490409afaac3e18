"""`dsa-multiple`: the paper's encoder with several dynamic self-attentions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsa_keras.encoders import dsa_single, register_encoder
from dsa_keras.encoders.encoder import SearchSpace

if TYPE_CHECKING:
    from dsa_keras.config import Recipe


@register_encoder("dsa-multiple")
@dataclass(frozen=True)
class DsaMultiple(dsa_single.DsaSingle):
    """Eight attentions of 300 units, whose vectors are concatenated (Eq. 7)."""

    spaces: ClassVar[Mapping[str, SearchSpace]] = {
        "small": dsa_single.DsaSingle.spaces["small"],
        "paper": {"num_attentions": (2, 4, 8), **dsa_single.DsaSingle.spaces["paper"]},
        "wide": {"num_attentions": (2, 4, 8, 16), **dsa_single.DsaSingle.spaces["wide"]},
    }

    units: int = 300
    num_attentions: int = 8

    def recipe(self, base: Recipe) -> Recipe:
        """On pairs of sentences the paper has a wider head, with more dropout."""
        if not base.model.inputs.is_pair:
            return base
        return base.replace(hidden_units=512, head_dropout=0.4)
