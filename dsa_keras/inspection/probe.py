"""Attention maps of fixed sentences after every epoch of training, for TensorBoard.

One picture per sentence under the same name in every epoch, so that TensorBoard's slider shows how
the attention of a sentence develops.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsa_keras.data.text_files import TextFile
from dsa_keras.datasets import Dataset
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import Text
from dsa_keras.inspection.explanation import Explainable, explain
from dsa_keras.inspection.maps import map_figure, maps_of

MAX_PROBES = 100
"""More sentences would make the logs of a long training too large."""


class Probe:
    """Call it with an epoch's number and the model: it logs a map of every text.

    Args:
        texts: what to look at.
        folder: where to write the logs; made at the first call.
    """

    def __init__(self, texts: Sequence[Text], folder: Path) -> None:
        self.texts, self.folder = list(texts), folder
        self._writer: Any = None

    def __call__(self, epoch: int, model: Explainable) -> None:
        """Draws and writes the maps."""
        import tensorflow as tf

        from dsa_keras.pictures import figure_image

        if self._writer is None:
            self._writer = tf.summary.create_file_writer(str(self.folder))
        digits = len(str(len(self.texts)))
        with self._writer.as_default(step=epoch):
            for number, one in enumerate(explain(model, self.texts), start=1):
                figure = map_figure(maps_of(one), f"What the model attends to after epoch {epoch}")
                name = f"attention/sentence {number:0{digits}}"
                tf.summary.image(name, figure_image(figure)[None])
        self._writer.flush()


def probe_texts(wanted: str, dataset: Dataset) -> list[Text]:
    """The texts that `--probe` names.

    Args:
        wanted: a number of examples, chosen from the dev split (always the same ones), or a file
            with a text a line; for pairs with a tab between the two sentences.
        dataset: what is trained on.

    Raises:
        ConfigError: if the number is out of range.
        DataError: if the file cannot be used.
    """
    if wanted.lstrip("-").isdecimal():
        if not 1 <= int(wanted) <= MAX_PROBES:
            raise ConfigError(f"--probe must be from 1 to {MAX_PROBES}, got {wanted}")
        split = dataset["dev"]
        chosen = np.random.default_rng(0).permutation(len(split))[: int(wanted)]
        return [split.texts[number] for number in np.sort(chosen)]
    texts: list[Text] = []
    for number, line in TextFile(Path(wanted)).lines():
        line = line.rstrip("\r\n")
        if not line.strip():
            continue
        texts.append(dataset.inputs.from_line(line, number, wanted))
    if not 1 <= len(texts) <= MAX_PROBES:
        raise DataError(
            f"has {len(texts):,} texts",
            where=wanted,
            hint=f"Give from 1 to {MAX_PROBES}, one a line",
        )
    return texts
