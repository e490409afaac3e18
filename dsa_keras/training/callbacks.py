"""What happens around an epoch of `fit`: its order, the bar, the end of an epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from dsa_keras.errors import DsaError
from dsa_keras.progress import progress_bar


class TrainingError(DsaError):
    """Training cannot go on."""


class EpochVariable(keras.callbacks.Callback):
    """Tells the input pipeline which epoch it is, since each has an order of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.variable = tf.Variable(0, trainable=False, dtype=tf.int32)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Sets the variable before the pipeline starts over."""
        self.variable.assign(epoch)


class ProgressBar(keras.callbacks.Callback):
    """One bar per epoch: loss, the watched metric, words per second, time left.

    Args:
        watched: name of the metric to show.
        epochs: number of the last epoch.
        steps: steps of an epoch.
        num_words: words of an epoch.
        show: False for no bar.
    """

    def __init__(self, watched: str, epochs: int, steps: int, num_words: int, show: bool) -> None:
        super().__init__()
        self.watched = watched
        self.epochs, self.steps, self.num_words, self.show = epochs, steps, num_words, show
        self.bar = progress_bar(None, "", show=False)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts a bar."""
        self.start = time.perf_counter()
        self.seconds = 0.0
        self.bar = progress_bar(
            self.steps,
            f"epoch {epoch + 1}/{self.epochs}",
            show=self.show,
            delay=0.0,
            unit=" steps",
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {postfix} {remaining}"
            " left",
        )

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Moves the bar; a loss that is not a number ends the training."""
        logs = logs or {}
        if not math.isfinite(logs.get("loss", 0.0)):
            raise TrainingError(
                f"the loss became {logs['loss']} at step {batch + 1} of the epoch",
                hint="Try a lower --learning-rate, or --precision float32, and look for odd values "
                "in the word vectors",
            )
        self.seconds = time.perf_counter() - self.start
        speed = self.num_words * (batch + 1) / self.steps / self.seconds
        self.bar.set_postfix_str(
            f"loss {logs.get('loss', 0):.4f}, {self.watched} {logs.get(self.watched, 0):.4f}, "
            f"{speed:,.0f} words/s,",
            refresh=False,
        )
        self.bar.update()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Takes the bar away."""
        self.bar.close()

    def close(self) -> None:
        """Takes the bar away when training ends within an epoch."""
        self.bar.close()


class EpochEnd(keras.callbacks.Callback):
    """Hands the figures of each epoch to a function, and stops if it says so.

    Args:
        finish: takes the epoch's number, counted from 1, and its logs; returns whether to stop.
    """

    def __init__(self, finish: Callable[[int, dict[str, float]], bool]) -> None:
        super().__init__()
        self.finish = finish

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Calls the function."""
        if self.finish(epoch + 1, dict(logs or {})):
            self.model.stop_training = True
