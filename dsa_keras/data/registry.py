"""`load_dataset`: every data set by its name, all in the same shape.

Readers are imported when they are asked for, so that nothing here needs TensorFlow. Which options a
data set takes is read from its loader's signature: there is no second list to keep in step.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection
from typing import Any

from dsa_keras.data.dataset import Dataset
from dsa_keras.errors import ConfigError, nearest

DATASETS = ("sst2", "sst5", "snli", "file", "demo-sentiment", "demo-nli")
"""Names that `load_dataset` knows; none of them needs TensorFlow."""


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    on_bad_rows: str = "error",
    **options: Any,
) -> Dataset:
    """Loads a data set: named splits of texts and integer labels, and the class names.

    Example:
    ```python
    sst = load_dataset("sst2", "data")
    mine = load_dataset("file", path="reviews.csv", text_column="review", label_column="stars")
    ```

    Args:
        name: one of `DATASETS`.
        data_dir: the folder (or official archive) of the data; generated data does not use it.
        on_bad_rows: "error" stops at the first bad row, "skip" leaves bad rows out and counts them
            in `Dataset.skipped`.
        **options: of the data set: `phrases` for sst2 and sst5 (see `dsa_keras.data.sst.load_sst`),
            columns, files and fractions for file (see `dsa_keras.data.tables.load_tables`), `seed`
            and `size` for generated data.

    Raises:
        ConfigError: if the name or an option is not known.
        DataError: if the data is missing or bad.
    """
    if name not in DATASETS:
        raise _unknown("data set", name, DATASETS)
    if name.startswith("demo-"):
        loader = _generator(name)
    else:
        loader = functools.partial(_reader(name), data_dir=data_dir, on_bad_rows=on_bad_rows)
    known = [
        option
        for option, parameter in inspect.signature(loader).parameters.items()
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
        and option not in ("data_dir", "on_bad_rows")
    ]
    for option in options:
        if option not in known:
            raise _unknown(f"option of {name}", option, known)
    return loader(**options)


def _reader(name: str) -> Callable[..., Dataset]:
    if name == "snli":
        from dsa_keras.data.snli import load_snli

        return load_snli
    if name == "file":
        from dsa_keras.data.tables import load_tables

        return load_tables
    from dsa_keras.data.sst import load_sst

    return functools.partial(load_sst, name)


def _generator(name: str) -> Callable[..., Dataset]:
    from dsa_keras.data import demo

    return demo.demo_sentiment if name == "demo-sentiment" else demo.demo_nli


def _unknown(kind: str, name: str, known: Collection[str]) -> ConfigError:
    hint = nearest(name, known) if known else "It takes none"
    return ConfigError(f"unknown {kind}: {name!r}", hint=hint)
