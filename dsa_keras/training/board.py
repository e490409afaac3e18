"""TensorBoard logs of a run: scalars of every epoch, pictures, histograms on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from dsa_keras.objectives import Evaluation
from dsa_keras.pictures import figure_image


class Board:
    """Writes the logs below a folder, training in `train`, development in `dev`.

    Args:
        folder: where TensorBoard will look.
        histograms: whether to write the weights' histograms too.
    """

    def __init__(self, folder: Path, histograms: bool) -> None:
        self.writers = {
            name: tf.summary.create_file_writer(str(folder / name)) for name in ("train", "dev")
        }
        self.histograms = histograms

    def write_epoch(
        self, epoch: int, record: dict[str, Any], evaluation: Evaluation, model: keras.Model
    ) -> None:
        """Writes what is known after an epoch."""
        for split, writer in self.writers.items():
            with writer.as_default(step=epoch):
                for name, value in record.items():
                    if name.startswith(f"{split}_") and value is not None:
                        tf.summary.scalar(name.removeprefix(f"{split}_"), value)
        with self.writers["dev"].as_default(step=epoch):
            for name, figure in evaluation.pictures(f"dev, epoch {epoch}").items():
                tf.summary.image(name, figure_image(figure)[None])
        if self.histograms:
            with self.writers["train"].as_default(step=epoch):
                for variable in model.trainable_variables:
                    tf.summary.histogram(variable.path, variable.value)
        for writer in self.writers.values():
            writer.flush()

    def close(self) -> None:
        """Finishes the files."""
        for writer in self.writers.values():
            writer.close()
