"""What every head is: from the vectors of an example's sentences to raw outputs."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dsa_keras.settings import Settings

if TYPE_CHECKING:
    import keras
    import numpy as np


@dataclass(frozen=True)
class Head(Settings, abc.ABC):
    """Computes raw outputs of sentence vectors.

    A head is a frozen dataclass of its hyper-parameters.
    """

    name: ClassVar[str] = ""

    @abc.abstractmethod
    def layer(self, num_outputs: int) -> keras.Layer:
        """Makes the layer, named `head`, from features `(batch, features)` to raw outputs."""

    def matching(self) -> keras.Layer:
        """Makes the layer that joins the vectors of two sentences, named `matching`."""
        from dsa_keras.layers import HeuristicMatching

        return HeuristicMatching(name="matching")

    def joined(self, matching: keras.Layer, vectors: Sequence[Any]) -> Any:
        """The features of pairs: that layer on the vectors of premise and hypothesis."""
        premise, hypothesis = vectors
        return matching([hypothesis, premise])

    def take_statistics(self, layer: keras.Layer, features: np.ndarray) -> None:
        """Makes statistics that the layer keeps those of these features; see `WeightAverage`."""

    def inference(self, layer: keras.Layer) -> tuple[Callable[[Any], Any], list[Any]]:
        """The layer for inference: a function from features to raw outputs, and its variables."""
        return lambda features: layer(features, training=False), [w.value for w in layer.weights]

    def to_json(self) -> dict[str, Any]:
        """Its name and its settings, ready for JSON."""
        return {"name": self.name, **self.to_dict()}
