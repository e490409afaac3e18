"""`mnli`: the Multi-Genre Natural Language Inference corpus from its official files.

It has two development sets: `dev`, of the genres of the training split ("matched"), which chooses
the epoch, and `dev-mismatched`, of other genres. The labels of its tests were never published.
"""

from __future__ import annotations

import os

from dsa_keras.datasets.dataset import Dataset
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.layout import Layout
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.datasets.nli import load_nli, recipe
from dsa_keras.datasets.option import ON_BAD_ROWS

_FILES = {"train": "train", "dev": "dev_matched", "dev-mismatched": "dev_mismatched"}

LAYOUT = Layout(
    title="MultiNLI",
    url="https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip",
    folders=("", "multinli_1.0", "multinli/multinli_1.0", "multinli"),
    files={
        split: (f"multinli_1.0_{name}.jsonl", f"multinli_1.0_{name}.txt")
        for split, name in _FILES.items()
    },
    complete=False,
)


def load_mnli(data_dir: str | os.PathLike[str] | None, *, on_bad_rows: str = "error") -> Dataset:
    """Loads whichever splits of MultiNLI are there, as (premise, hypothesis) pairs.

    Args:
        data_dir: the folder with `multinli_1.0/multinli_1.0_dev_matched.jsonl` (or `.txt`) and its
            like, that folder itself, or the official archive or a folder that holds it.
        on_bad_rows: "error" stops at the first bad row, "skip" counts them.
    """
    return load_nli("mnli", LAYOUT, data_dir, on_bad_rows)


register_dataset(
    Entry("mnli", "Multi-Genre Natural Language Inference", load_mnli, recipe, (ON_BAD_ROWS,))
)
