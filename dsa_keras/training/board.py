"""TensorBoard logs of a run: scalars of every epoch, pictures, histograms on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.training.figures import confusion_figure, figure_image


class Board:
    """Writes the logs below a folder, training in `train`, development in `dev`.

    Args:
        folder: where TensorBoard will look.
        class_names: of the confusion matrix.
        histograms: whether to write the weights' histograms too.
    """

    def __init__(self, folder: Path, class_names: tuple[str, ...], histograms: bool) -> None:
        self.writers = {
            name: tf.summary.create_file_writer(str(folder / name)) for name in ("train", "dev")
        }
        self.class_names, self.histograms = class_names, histograms

    def write_epoch(
        self, epoch: int, record: dict[str, Any], confusion: np.ndarray, model: keras.Model
    ) -> None:
        """Writes what is known after an epoch."""
        for split, writer in self.writers.items():
            with writer.as_default(step=epoch):
                for name, value in record.items():
                    if name.startswith(f"{split}_") and value is not None:
                        tf.summary.scalar(name.removeprefix(f"{split}_"), value)
        with self.writers["dev"].as_default(step=epoch):
            picture = figure_image(
                confusion_figure(confusion, self.class_names, f"dev, epoch {epoch}")
            )
            tf.summary.image("confusion matrix", picture[None])
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
