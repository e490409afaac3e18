"""Data sets, one file each, registered by name: reader, splits, recipe, and options of commands.

`CONTRIBUTING.md` says how to add one. Nothing here loads TensorFlow.
"""

from dsa_keras.datasets.dataset import Dataset, Origin, Split
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.loading import (
    DATASETS,
    load_dataset,
    preset,
    recipe_for,
    register_dataset,
)
from dsa_keras.datasets.option import Option

__all__ = [
    "DATASETS",
    "Dataset",
    "Entry",
    "Option",
    "Origin",
    "Split",
    "load_dataset",
    "preset",
    "recipe_for",
    "register_dataset",
]
