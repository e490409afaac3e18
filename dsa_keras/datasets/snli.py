"""`snli`: the Stanford Natural Language Inference corpus from its official files."""

from __future__ import annotations

import os

from dsa_keras.datasets.dataset import Dataset
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.layout import Layout
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.datasets.nli import load_nli, recipe
from dsa_keras.datasets.option import ON_BAD_ROWS

LAYOUT = Layout(
    title="SNLI",
    url="https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
    folders=("", "snli_1.0", "snli/snli_1.0", "snli"),
    files={
        split: (f"snli_1.0_{split}.jsonl", f"snli_1.0_{split}.txt")
        for split in ("train", "dev", "test")
    },
    complete=False,
)


def load_snli(data_dir: str | os.PathLike[str] | None, *, on_bad_rows: str = "error") -> Dataset:
    """Loads whichever splits of SNLI are there, as (premise, hypothesis) pairs.

    Args:
        data_dir: the folder with `snli_1.0/snli_1.0_train.jsonl` (or `.txt`) and its like, that
            folder itself, or the official archive or a folder that holds it. Where both forms are
            there, jsonl is read.
        on_bad_rows: "error" stops at the first bad row, "skip" counts them.
    """
    return load_nli("snli", LAYOUT, data_dir, on_bad_rows)


register_dataset(
    Entry("snli", "Stanford Natural Language Inference", load_snli, recipe, (ON_BAD_ROWS,))
)
