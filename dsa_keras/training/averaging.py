"""The average of the weights on their way, which scores better than where they stand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.errors import RunError
from dsa_keras.models import Network


class WeightAverage(keras.callbacks.Callback):
    """An exponential moving average of all weights, batch norm's statistics among them.

    After step n the average keeps `min(decay, (1 + n) / (10 + n))` of itself and takes the rest
    from the weights: in the first steps it forgets fast, so it is of use from the first epoch on.

    Args:
        network: whose weights are averaged; the variables of the average are created here, so
            several devices need their scope around this.
        optimizer: built; it counts the steps.
        decay: 0 for no average: then nothing is kept and nothing changes.
    """

    def __init__(
        self, network: Network, optimizer: keras.optimizers.Optimizer, decay: float
    ) -> None:
        super().__init__()
        self.decay = decay
        self._optimizer = optimizer
        self._weights = network.named_weights() if decay else {}
        self._average = {
            name: tf.Variable(weight.value, trainable=False)
            for name, weight in self._weights.items()
        }

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Takes the weights of the step into the average."""
        if self.decay:
            self._update()

    @tf.function(autograph=False)
    def _update(self) -> None:
        steps = tf.cast(self._optimizer.iterations.value, tf.float32)
        rest = 1.0 - tf.minimum(self.decay, (1.0 + steps) / (10.0 + steps))
        for name, average in self._average.items():
            average.assign_sub(rest * (average - self._weights[name].value))

    @contextlib.contextmanager
    def in_model(self) -> Iterator[None]:
        """Puts the average into the model for the time of a `with` block.

        What the block changes in the weights, which is batch norm's statistics, it changes in the
        average.
        """
        trained = {name: np.array(weight) for name, weight in self._weights.items()}
        try:
            for name, weight in self._weights.items():
                weight.assign(self._average[name].numpy())
            yield
        finally:
            for name, weight in self._weights.items():
                self._average[name].assign(np.array(weight))
                weight.assign(trained[name])

    def state(self) -> dict[str, np.ndarray]:
        """The average by the names of the weights; empty if there is none."""
        return {name: average.numpy() for name, average in self._average.items()}

    def restore(self, state: Mapping[str, np.ndarray], where: Path) -> None:
        """Goes on from a state.

        Raises:
            RunError: if it is not that of such a model.
        """
        if state.keys() != self._average.keys():
            raise RunError(
                "has no average of the weights that fits config.json",
                where=where,
                hint="Restore the file that belongs to this run, or train again",
            )
        for name, average in self._average.items():
            average.assign(state[name])
