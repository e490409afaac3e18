"""Trains a network into a run folder, and goes on with one that was stopped.

Read top to bottom: the data becomes numbers (`task_data.py`), the folder is made, and the network
is fitted epoch by epoch (`fit.py`). `resume` does the same from the files of the folder; since the
order of an epoch depends on seed and epoch only, and the state holds the optimizer, the schedule
and the random generators, it continues as if it had never stopped.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import dsa_keras
from dsa_keras.config import ModelConfig, Recipe
from dsa_keras.datasets import Dataset, recipe_for
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.runs import Run, RunConfig
from dsa_keras.training.fit import AfterEpoch, Options, check_options, fit
from dsa_keras.training.task_data import (
    TaskData,
    check_splits,
    fingerprint,
    prepare_splits,
    prepare_task,
)

_FEW_DEV_EXAMPLES = 100
"""With so many, an accuracy has a standard error of 3 to 5 points."""

_LOGS_AND_WEIGHTS = 100_000_000
"""Bytes that a run of the paper's models takes besides its word vectors."""


def train(
    dataset: Dataset,
    run_dir: str | Path,
    recipe: Recipe | None = None,
    *,
    vectors: Sequence[str | Path] = (),
    options: Options | None = None,
    force: bool = False,
    made_by: str = "train",
    task_data: TaskData | None = None,
    after_epoch: AfterEpoch | None = None,
) -> RunConfig:
    """Trains a new model.

    Example:
    ```python
    dataset = load_dataset("file", path="reviews.csv")
    train(dataset, "runs/reviews", recipe_for(dataset, "self-attention", vectors=False))
    ```

    Args:
        dataset: with the splits `train` and `dev`.
        run_dir: the folder to make.
        recipe: the network and how to train it; None takes that of the data set. What the data
            decides, such as the number of words, is set from the data.
        vectors: files of word vectors. Without any, words get random vectors.
        options: how to run on this machine.
        force: whether an old run in the folder may be replaced; it is once all is prepared.
        made_by: what makes the run. Anything but `train` replaces only runs of its own.
        task_data: what `prepare_task` made of the same arguments, if it is at hand.
        after_epoch: called after each epoch; may stop the training.

    Returns:
        What stands in the run's `config.json`.
    """
    options = options or Options()
    check_splits(dataset)
    recipe = recipe or recipe_for(dataset, vectors=bool(vectors))
    check_options(options, recipe.model.encoder)
    run = Run(run_dir)
    only = made_by if made_by != "train" else None
    run.check_free(force=force, made_by=only)
    run.check_room(_LOGS_AND_WEIGHTS)
    words = task_data or prepare_task(dataset, recipe, vectors, show_progress=options.show_progress)
    if options.show_progress and words.vectors["files"]:
        print(_coverage(words), flush=True)
    matrix, model = words.matrix, fitted(recipe.model, dataset, words)
    origin = dataset.origin
    config = RunConfig(
        task=dataset.name,
        model=model,
        training=recipe.training,
        data={
            "data_dir": origin and origin.data_dir,
            "options": origin and dict(origin.options),
            "examples": {name: len(split) for name, split in dataset.splits.items()},
            "fingerprint": fingerprint(words.splits),
        },
        vectors=words.vectors,
        options={
            "jit": options.jit,
            "precision": options.precision,
            "deterministic": options.deterministic,
            "devices": list(options.devices) if options.devices else None,
        },
        versions={
            "dsa_keras": dsa_keras.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "python": platform.python_version(),
        },
        made_by=made_by,
    )
    # Trained vectors are in both weights files, with the optimizer's state, old beside new.
    copies = 10 if model.train_embeddings else 1
    run.check_room(_LOGS_AND_WEIGHTS + copies * matrix.nbytes)
    fixed = None if model.train_embeddings else matrix
    if options.show_progress and (warning := few_dev_examples(len(dataset["dev"]))):
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    with run.made(config, words.vocabulary, fixed, force=force, made_by=only):
        fit(
            run,
            config,
            words.splits,
            words.vocabulary,
            matrix,
            options,
            after_epoch,
            resumed=False,
        )
    return config


def few_dev_examples(examples: int) -> str:
    """What to know of a small development split; nothing of one that is large enough."""
    if examples >= _FEW_DEV_EXAMPLES:
        return ""
    return (
        f"the dev split has {examples} examples, fewer than {_FEW_DEV_EXAMPLES}: the epoch that is "
        "kept is chosen by them, and by chance"
    )


def _coverage(words: TaskData) -> str:
    """How many words have a vector from a file: the first thing to look at if results are poor."""
    summary, *files = words.vectors["report"].splitlines()
    running = words.vectors["token_coverage"]
    return "\n".join([f"word vectors: {summary}; {running:.1%} of the running words", *files])


def fitted(model: ModelConfig, dataset: Dataset, words: TaskData) -> ModelConfig:
    """The network with all that the data decides.

    Raises:
        ConfigError: if the network is to say something else than the data holds.
    """
    objective, found = model.objective, dataset.objective
    if type(objective) is not type(found):
        raise ConfigError(
            f"the recipe is one of {objective.name}, the data is of {found.name}",
            where=dataset.name,
            hint="Take the recipe of the data set",
        )
    facts = {name: getattr(found, name) for name in found.of_data()}
    return model.replace(
        objective=objective.replace(**facts),
        inputs=dataset.inputs,
        vocabulary_size=len(words.vocabulary),
        embedding_dim=words.matrix.shape[1],
    )


def resume(
    run_dir: str | Path,
    *,
    epochs: int | None = None,
    dataset: Dataset | None = None,
    options: Options | None = None,
    task_data: TaskData | None = None,
    after_epoch: AfterEpoch | None = None,
) -> RunConfig:
    """Goes on with a run that was stopped, from its last finished epoch.

    Args:
        run_dir: the folder of the run.
        epochs: a new number of epochs, to train a finished run longer.
        dataset: the data of the run, if it is at hand; it must be if it was made in Python.
        options: what is shown, and devices if they are others than before; how the run computes
            is taken from the run.
        task_data: the data of the run as numbers, if it is at hand.
        after_epoch: called after each epoch; may stop the training.

    Raises:
        RunError: if the data is not what it was, the state is missing or damaged, or another
            process trains in the folder.
    """
    run = Run(run_dir)
    config = run.config()
    with run.training():
        config = run.config()
        if run.is_begun:
            run.state()
        vocabulary = run.vocabulary(config)
        prepared, dataset = task_data.splits if task_data else None, dataset
        if prepared is None:
            dataset = dataset or config.dataset()
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
        elif not run.is_begun:
            # Stopped in its first epoch: vectors that are trained start again as they did.
            if task_data is None:
                assert dataset is not None
                task_data = prepare_task(dataset, config.recipe, config.vector_files)
            matrix = task_data.matrix
        run.adopted(config)
        if epochs is not None and epochs != config.training.epochs:
            config = RunConfig.from_dict(
                {**config.to_dict(), "training": {**config.training.to_dict(), "epochs": epochs}}
            )
            run.save_config(config)
        fit(
            run,
            config,
            prepared,
            vocabulary,
            matrix,
            resumed_options(config, options or Options()),
            after_epoch,
            resumed=True,
        )
    return config


def resumed_options(config: RunConfig, shown: Options) -> Options:
    """How a run goes on: as it began, but for what is shown."""
    how: dict[str, Any] = dict(config.options)
    devices = shown.devices or how.get("devices")
    how["devices"] = tuple(devices) if devices else None
    return Options(
        histograms=shown.histograms,
        show_progress=shown.show_progress,
        probe=shown.probe,
        **how,
    )
