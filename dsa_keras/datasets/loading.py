"""`load_dataset` and `preset`: a data set, or its recipe, by the name of the data set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.datasets.dataset import Dataset
from dsa_keras.datasets.entry import Entry
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS, Encoder
from dsa_keras.registry import Registry

DATASETS: Registry[Entry] = Registry("data set", "dsa_keras.datasets")
"""The data sets by name; none of them needs TensorFlow."""


def register_dataset(entry: Entry) -> Entry:
    """Registers a data set under its name."""
    return DATASETS.add(entry.name, entry)


def load_dataset(
    name: str, data_dir: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """Loads a data set: named splits of texts with their targets.

    Example:
    ```python
    sst = load_dataset("sst2", "data")
    mine = load_dataset("file", path="reviews.csv", text_column="review", label_column="stars")
    ```

    Args:
        name: one of `DATASETS`.
        data_dir: the folder (or official archive) of the data; generated data does not use it.
        **options: of the data set, such as `phrases` for sst2 (see the file of each in
            `dsa_keras.datasets`). All that read files take `on_bad_rows`: "error" stops at the
            first bad row, "skip" leaves bad rows out and counts them in `Dataset.skipped`.

    Raises:
        ConfigError: if the name or an option is not known.
        DataError: if the data is missing or bad.
    """
    return DATASETS.get(name).load(data_dir, options)


def preset(
    task: str,
    encoder: str | Encoder = DEFAULT_ENCODER,
    options: Mapping[str, Any] | None = None,
    *,
    vectors: bool = True,
) -> Recipe:
    """The recipe of a data set for an encoder: the paper's setting (its appendix).

    One thing is added to the paper: what is kept is an average of the weights, and
    `results/ablations.md` shows what that brings. Generated data has a setting of its own, which
    learns it in a minute or two without any word vectors.

    Args:
        task: one of `DATASETS`.
        encoder: one of `ENCODERS`, or an encoder with settings of your own.
        options: of the data set, where they matter for the recipe.
        vectors: whether there are word vectors. Random ones, where there are none, are trained.

    Example:

    >>> preset("snli", "dsa-multiple").model.encoder.num_attentions
    8
    """
    entry = DATASETS.get(task)
    chosen = ENCODERS.get(encoder)() if isinstance(encoder, str) else encoder
    recipe = entry.recipe(chosen, options or {})
    return recipe if vectors or not entry.vectors else entry.without_vectors(recipe)


def recipe_for(
    dataset: Dataset, encoder: str | Encoder = DEFAULT_ENCODER, *, vectors: bool = True
) -> Recipe:
    """The recipe of a data set that is loaded, or was made in Python; see `preset`.

    Args:
        dataset: what to train on.
        encoder: one of `ENCODERS`, or an encoder with settings of your own.
        vectors: whether there are word vectors. Random ones, where there are none, are trained.
    """
    if dataset.origin is not None:
        return preset(dataset.name, encoder, dataset.origin.options, vectors=vectors)
    chosen = ENCODERS.get(encoder)() if isinstance(encoder, str) else encoder
    recipe = recipes.own_data(chosen, dataset.objective, dataset.inputs)
    return recipe if vectors else recipes.own_words(recipe)
