"""Run folders that take seconds to train: the networks with few units, on generated data."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.encoders import ENCODERS

SMALL: dict[str, Any] = {
    "embedding_dim": 8,
    "first_filters": 8,
    "filters": 4,
    "num_dense_layers": 1,
    "compressed_units": 8,
    "units": 8,
    "lstm_units": 4,
    "cnn_filters": 4,
    "hidden_units": 8,
}
"""Hyper-parameters that make any encoder small; each has some of them."""


def small(model: ModelConfig, **changes: Any) -> ModelConfig:
    """A small form of a network, with further changes."""
    names = model.choosable()
    return model.replace(**{**{k: v for k, v in SMALL.items() if k in names}, **changes})


def small_options(encoder: str = "dsa-single") -> list[str]:
    """The same for the command line."""
    names = ModelConfig(encoder=ENCODERS.get(encoder)()).choosable()
    pairs = [(f"--{k.replace('_', '-')}", str(v)) for k, v in SMALL.items() if k in names]
    return [part for pair in pairs for part in pair]


SMALL_OPTIONS = small_options()
"""Those of the default encoder."""


def tiny_run(
    path: str | os.PathLike[str],
    pair: bool = False,
    encoder: str = "dsa-single",
    *,
    size: int = 300,
    training: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    **model_changes: Any,
) -> Path:
    """Trains a tiny model for an epoch on generated data; returns its run folder.

    Args:
        path: the folder to make.
        pair: whether an example is two sentences.
        encoder: one of `ENCODERS`.
        size: examples of the data, all splits together.
        training: changes of the `TrainingConfig`.
        options: arguments of `Options`.
        **model_changes: of the `ModelConfig`.
    """
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import train

    task = "demo-nli" if pair else "demo-sentiment"
    model = preset("snli" if pair else "sst2", encoder).model
    settings = {"epochs": 1, "tokenizer": "whitespace", "oov_range": 0.5, "batch_size": 32}
    train(
        load_dataset(task, size=size),
        path,
        Recipe(small(model, **model_changes), TrainingConfig(**{**settings, **(training or {})})),
        options=Options(**{"show_progress": False, **(options or {})}),
    )
    return Path(path)


@functools.cache
def shared_run(pair: bool = False, encoder: str = "dsa-single") -> Path:
    """A tiny run that is trained once for all tests; they must not change its folder.

    Pairs are kept by the average of their weights, as SNLI's are.
    """
    folder = tempfile.mkdtemp(prefix="dsa-keras-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    training = {"averaging": 0.9} if pair else {}
    return tiny_run(Path(folder) / "run", pair=pair, encoder=encoder, training=training)
