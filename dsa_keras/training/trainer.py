"""Trains a classifier into a run folder, and goes on with one that was stopped.

Read top to bottom: the folder is made ready, the data becomes numbers (`task_data.py`), and the
model is fitted epoch by epoch (`fit.py`). `resume` does the same from the files of the folder;
since the order of an epoch depends on seed and epoch only, and the state holds the optimizer, the
schedule and the random generators, it continues as if it had never stopped.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import dsa_keras
from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data.dataset import Dataset
from dsa_keras.data.registry import load_dataset
from dsa_keras.errors import RunError
from dsa_keras.training.fit import AfterEpoch, Options, fit
from dsa_keras.training.run import Run, RunConfig
from dsa_keras.training.task_data import (
    TaskData,
    check_splits,
    fingerprint,
    prepare_splits,
    prepare_task,
)

_LOGS_AND_WEIGHTS = 100_000_000
"""Bytes that a run of the paper's models takes besides its word vectors."""


def train(
    dataset: Dataset,
    model: ModelConfig,
    training: TrainingConfig,
    run_dir: str | Path,
    *,
    vectors: Sequence[str | Path] = (),
    data: Mapping[str, Any] | None = None,
    options: Options | None = None,
    force: bool = False,
    task_data: TaskData | None = None,
    after_epoch: AfterEpoch | None = None,
) -> RunConfig:
    """Trains a new model.

    Args:
        dataset: with the splits `train` and `dev`.
        model: the network; vocabulary size and number of classes are set from the data.
        training: how to train.
        run_dir: the folder to make.
        vectors: files of word vectors. Without any, words get random vectors.
        data: how `load_dataset` was called, `{"data_dir": ..., "options": {...}}`, for `resume`.
        options: how to run on this machine.
        force: whether an old run in the folder may be removed.
        task_data: what `prepare_task` made of the same arguments, if it is at hand.
        after_epoch: called after each epoch; may stop the training.

    Returns:
        What stands in the run's `config.json`.
    """
    options = options or Options()
    check_splits(dataset)
    run = Run(run_dir)
    run.create(force=force, needed_bytes=_LOGS_AND_WEIGHTS)
    words = task_data or prepare_task(
        dataset, model, training, vectors, show_progress=options.show_progress
    )
    vocabulary, matrix, prepared = words.vocabulary, words.matrix, words.splits
    model = model.replace(
        vocabulary_size=len(vocabulary),
        num_classes=len(dataset.class_names),
        embedding_dim=matrix.shape[1],
    )
    config = RunConfig(
        task=dataset.name,
        class_names=dataset.class_names,
        is_pair=dataset.is_pair,
        model=model,
        training=training,
        data={
            "data_dir": None,
            "options": {},
            **(data or {}),
            "examples": {name: len(split) for name, split in dataset.splits.items()},
            "fingerprint": fingerprint(prepared),
        },
        vectors=words.vectors,
        options={
            "jit": options.jit,
            "precision": options.precision,
            "deterministic": options.deterministic,
        },
        versions={
            "dsa_keras": dsa_keras.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "python": platform.python_version(),
        },
    )
    # Trained vectors are in both weights files, with the optimizer's state, old beside new.
    copies = 10 if model.train_embeddings else 1
    run.check_room(_LOGS_AND_WEIGHTS + copies * matrix.nbytes)
    # The config comes first: it is what makes the folder a run, which may be overwritten.
    run.save_config(config)
    vocabulary.save(run.vocabulary_file)
    if not model.train_embeddings:
        run.save_vectors(matrix)
    fit(run, config, prepared, matrix, options, after_epoch, resumed=False)
    return config


def resume(
    run_dir: str | Path,
    *,
    epochs: int | None = None,
    options: Options | None = None,
    task_data: TaskData | None = None,
    after_epoch: AfterEpoch | None = None,
) -> RunConfig:
    """Goes on with a run that was stopped, from its last finished epoch.

    Args:
        run_dir: the folder of the run.
        epochs: a new number of epochs, to train a finished run longer.
        options: what is shown; how the run computes is taken from the run.
        task_data: the data of the run as numbers, if it is at hand.
        after_epoch: called after each epoch; may stop the training.
    """
    run = Run(run_dir)
    config = run.config()
    if epochs is not None:
        config = RunConfig.from_dict(
            {**config.to_dict(), "training": {**config.training.to_dict(), "epochs": epochs}}
        )
        run.save_config(config)
    shown = options or Options()
    options = Options(
        histograms=shown.histograms,
        show_progress=shown.show_progress,
        probe=shown.probe,
        **config.options,
    )
    if task_data:
        prepared = task_data.splits
    else:
        vocabulary = run.vocabulary(config)
        dataset = load_dataset(config.task, config.data["data_dir"], **config.data["options"])
        prepared = prepare_splits(dataset, config.training, vocabulary)
    if fingerprint(prepared) != config.data["fingerprint"]:
        raise RunError(
            "the data is not what the run was started with",
            where=run.path,
            hint="Restore the data, or start a new run",
        )
    matrix = None
    if not config.model.train_embeddings:
        matrix = run.vectors(config)
    elif not run.last_file.exists():
        # Stopped in its first epoch: vectors that are trained start again as they did.
        files = config.vectors["files"]
        task_data = task_data or prepare_task(dataset, config.model, config.training, files)
        matrix = task_data.matrix
    fit(run, config, prepared, matrix, options, after_epoch, resumed=True)
    return config
