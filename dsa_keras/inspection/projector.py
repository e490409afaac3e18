"""Vectors for TensorBoard's projector, with a line about the sentence of each.

The projector reads a `tf.train.Checkpoint`, a table beside it, and a config that joins the two; it
looks only into folders that have event files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

_METADATA = "metadata.tsv"
_SEPARATORS = re.compile(r"[\s\x00-\x1f\x7f]+")


def write_projector(
    folder: Path, vectors: Mapping[str, np.ndarray], metadata: Mapping[str, Sequence[object]]
) -> None:
    """Writes vectors and their metadata for the projector.

    Args:
        folder: a folder of event files.
        vectors: `(sentences, units)` by name, all about the same sentences.
        metadata: columns of the table, at least two, by name.
    """
    import tensorflow as tf
    from tensorboard.plugins import projector

    columns = list(metadata.values())
    table = ["\t".join(_clean(name) for name in metadata)]
    table += ["\t".join(_clean(str(value)) for value in row) for row in zip(*columns, strict=True)]
    (folder / _METADATA).write_text("\n".join(table) + "\n", encoding="utf-8")
    variables = {name: tf.Variable(values, name=name) for name, values in vectors.items()}
    tf.train.Checkpoint(**variables).save(str(folder / "vectors.ckpt"))
    config = projector.ProjectorConfig()
    for name in vectors:
        one = config.embeddings.add()
        one.tensor_name = f"{name}/.ATTRIBUTES/VARIABLE_VALUE"
        one.metadata_path = _METADATA
    projector.visualize_embeddings(str(folder), config)


def _clean(text: str) -> str:
    """One cell of the table: tabs and line breaks would end it."""
    return _SEPARATORS.sub(" ", text).strip() or "(none)"
