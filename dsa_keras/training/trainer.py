"""Trains a classifier into a run folder, and goes on with one that was stopped.

Read top to bottom: the data becomes numbers, the folder is made ready, the model is built, `fit`
runs on packed batches, and after every epoch the state is saved. `resume` does the same from the
files of the folder; since the order of an epoch depends on seed and epoch only, and the state holds
the optimizer, the schedule and the random generators, it continues as if it had never stopped.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import dsa_keras
from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data.batches import (
    LENGTH_MULTIPLE,
    Prepared,
    count_words,
    distinct,
    num_batches,
    packed_batches,
    prepare,
)
from dsa_keras.data.dataset import Dataset
from dsa_keras.data.registry import load_dataset
from dsa_keras.data.vectors import load_vectors
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.files import write_text
from dsa_keras.models import (
    assign_vectors,
    build_classifier,
    build_pair_classifier,
    pack_classifier,
)
from dsa_keras.sentence_model import SentenceModel
from dsa_keras.training.board import Board
from dsa_keras.training.callbacks import EpochEnd, EpochVariable, ProgressBar
from dsa_keras.training.card import model_card
from dsa_keras.training.evaluation import Evaluation, confusion_matrix
from dsa_keras.training.optimizers import build_optimizer, take_gradient_norm
from dsa_keras.training.run import Run, RunConfig
from dsa_keras.training.schedule import Schedule
from dsa_keras.training.weights import restore_state, save_state, save_weights, weights_of


@dataclass(frozen=True)
class Options:
    """How training runs on the machine; none of it changes what is computed, beyond rounding.

    Attributes:
        jit: XLA: `on`, `off`, or `auto`: on with a GPU. On a CPU graph mode is faster, because
            XLA's random numbers for dropout are slow there.
        precision: `float32`, `mixed_float16` or `mixed_bfloat16`.
        deterministic: whether the same seed gives the same bits.
        histograms: whether to log the weights' histograms.
        show_progress: whether to show a bar on a terminal.
        devices: devices to train on together, such as `["GPU:0", "GPU:1"]`; None takes all GPUs.
        probe: called after each epoch with its number and the model, to look at it.
    """

    jit: str = "auto"
    precision: str = "float32"
    deterministic: bool = False
    histograms: bool = False
    show_progress: bool = True
    devices: tuple[str, ...] | None = None
    probe: Callable[[int, SentenceModel], None] | None = None


@dataclass(frozen=True)
class TaskData:
    """A data set as numbers. Trainings that differ in the network only can share one.

    Attributes:
        vocabulary: the words.
        matrix: their vectors.
        vectors: the files of the vectors, and what was found in them.
        splits: `train` and `dev`.
    """

    vocabulary: Vocabulary
    matrix: np.ndarray
    vectors: Mapping[str, Any]
    splits: Mapping[str, Prepared]


AfterEpoch = Callable[[dict[str, Any]], bool]
"""Takes the figures of an epoch once its state is saved; returns whether to stop there."""


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
    _check_splits(dataset)
    run = Run(run_dir)
    run.create(force=force, needed_bytes=100_000_000)
    words = task_data or prepare_task(dataset, model, training, vectors, options)
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
            "fingerprint": _fingerprint(prepared),
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
    # The config comes first: it is what makes the folder a run, which may be overwritten.
    run.save_config(config)
    vocabulary.save(run.vocabulary_file)
    if not model.train_embeddings:
        run.save_vectors(matrix)
    _fit(run, config, prepared, matrix, options, after_epoch, resumed=False)
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
        prepared = _prepared(dataset, config.training, vocabulary)
    if _fingerprint(prepared) != config.data["fingerprint"]:
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
    _fit(run, config, prepared, matrix, options, after_epoch, resumed=True)
    return config


def prepare_task(
    dataset: Dataset,
    model: ModelConfig,
    training: TrainingConfig,
    vectors: Sequence[str | Path] = (),
    options: Options | None = None,
) -> TaskData:
    """Finds the words and their vectors, and makes numbers of `train` and `dev`.

    What counts of the configs is `embedding_dim`, `tokenizer`, `oov_range` and `seed`.
    """
    _check_splits(dataset)
    words = _words(dataset, model, training, vectors, options or Options())
    return TaskData(*words, _prepared(dataset, training, words[0]))


def _check_splits(dataset: Dataset) -> None:
    for split in ("train", "dev"):
        if split not in dataset.splits or not len(dataset[split]):
            raise DataError(
                f"the data has no {split} examples",
                where=dataset.name,
                hint="The weights kept are those with the best dev accuracy, so training needs "
                "both: give a file for each, a split column, or fractions",
            )


def _words(
    dataset: Dataset,
    model: ModelConfig,
    training: TrainingConfig,
    paths: Sequence[str | Path],
    options: Options,
) -> tuple[Vocabulary, np.ndarray, dict[str, Any]]:
    """The vocabulary, its vectors, and what to say about them.

    With vectors from files the words of all splits get theirs, as InferSent does. A word whose
    vector must be learnt, or is random, is of no use unless training has it.
    """
    splits = dataset.splits.values() if paths else [dataset["train"]]
    counts = count_words(
        distinct([text for split in splits for text in split.texts])[0], training.tokenizer
    )
    vocabulary = Vocabulary.from_counts(counts)
    if paths:
        vectors = load_vectors(
            paths,
            vocabulary,
            oov_range=training.oov_range,
            seed=training.seed,
            show_progress=options.show_progress,
        )
        covered = vectors.token_coverage([counts.get(word, 0) for word in vocabulary])
        found = {"coverage": vectors.coverage, "token_coverage": covered, "report": vectors.report}
        return vocabulary, vectors.matrix, {"files": [str(path) for path in paths], **found}
    random = np.random.default_rng([training.seed, len(vocabulary)])
    bound, shape = training.oov_range, (len(vocabulary), model.embedding_dim)
    matrix = random.uniform(-bound, bound, shape).astype(np.float32)
    matrix[0] = 0
    return vocabulary, matrix, {"files": []}


def _prepared(
    dataset: Dataset, training: TrainingConfig, vocabulary: Vocabulary
) -> dict[str, Prepared]:
    return {
        name: prepare(dataset[name], training.tokenizer, vocabulary) for name in ("train", "dev")
    }


def _fingerprint(prepared: Mapping[str, Prepared]) -> str:
    """Tells whether the data of a resumed run is still the same."""
    digest = hashlib.sha256()
    for split in prepared.values():
        for array in (split.sentences.ids, split.sentences.offsets, split.index, split.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _fit(
    run: Run,
    config: RunConfig,
    prepared: Mapping[str, Prepared],
    matrix: np.ndarray | None,
    options: Options,
    after_epoch: AfterEpoch | None,
    *,
    resumed: bool,
) -> None:
    """Builds and compiles the model, restores its state if there is one, and fits."""
    training = config.training
    keras.utils.set_random_seed(training.seed)
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.config.set_dtype_policy(options.precision)
    strategy, jit = _placement(options)
    try:
        with strategy.scope():
            build = build_pair_classifier if config.is_pair else build_classifier
            model = build(config.model)
            if matrix is not None:
                assign_vectors(model, matrix)
            packed = pack_classifier(model)
            packed.compile(
                optimizer=build_optimizer(training),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                metrics=["accuracy"],
                jit_compile=jit,
            )
            packed.optimizer.build(packed.trainable_variables)
        if options.probe is not None:
            probed = SentenceModel(model, run.vocabulary(config), config)
            after_epoch = _with_probe(options.probe, probed, after_epoch)
        fit = _Fit(run, config, prepared, packed, strategy, options, jit, after_epoch)
        fit.run_epochs(resumed=resumed)
    finally:
        keras.config.set_dtype_policy("float32")


def _with_probe(
    probe: Callable[[int, SentenceModel], None],
    model: SentenceModel,
    after_epoch: AfterEpoch | None,
) -> AfterEpoch:
    def look(record: dict[str, Any]) -> bool:
        probe(record["epoch"], model)
        return after_epoch(record) if after_epoch else False

    return look


def _placement(options: Options) -> tuple[tf.distribute.Strategy, bool]:
    """Where training runs, and whether XLA compiles it."""
    gpus = [f"GPU:{number}" for number in range(len(tf.config.list_logical_devices("GPU")))]
    devices = list(options.devices or gpus)
    if options.jit not in ("auto", "on", "off"):
        raise ConfigError(f"jit must be auto, on or off, got {options.jit!r}")
    if len(devices) > 1:
        if options.jit == "on":
            raise ConfigError(
                "XLA does not go together with several devices", hint="Use --jit off or one device"
            )
        return tf.distribute.MirroredStrategy(devices), False
    jit = options.jit == "on" or (options.jit == "auto" and bool(gpus))
    return tf.distribute.get_strategy(), jit


class _Fit:
    """One call of `fit` and what it needs at the end of each epoch."""

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        prepared: Mapping[str, Prepared],
        model: keras.Model,
        strategy: tf.distribute.Strategy,
        options: Options,
        jit: bool,
        after_epoch: AfterEpoch | None,
    ) -> None:
        self.run, self.config, self.prepared, self.model = run, config, prepared, model
        self.strategy, self.options, self.after_epoch = strategy, options, after_epoch
        self.replicas = strategy.num_replicas_in_sync
        self.separator = max(config.model.kernel_sizes) // 2
        # XLA compiles anew for every length, so it gets fewer of them.
        self.multiple = 256 if jit else LENGTH_MULTIPLE
        self.schedule = Schedule(config.training)
        self.records: list[dict[str, Any]] = []
        self.best: dict[str, np.ndarray] = {}
        self.dev = self._batches("dev")
        self.board: Board | None = None

    def run_epochs(self, *, resumed: bool) -> None:
        """Fits from the first epoch that is not done to the last."""
        if resumed:
            self._restore()
            if self.schedule.finished:
                return
        training = self.config.training
        self.board = Board(self.run.logs, self.config.class_names, self.options.histograms)
        epoch = EpochVariable()
        dataset: Any = self._batches("train", seed=training.seed, epoch=epoch.variable)
        if self.replicas > 1:
            # Replicas take batches in turn; splitting one would tear its sentences apart.
            pipeline = dataset
            dataset = self.strategy.distribute_datasets_from_function(lambda _: pipeline)
        steps = num_batches(len(self.prepared["train"]), training.batch_size)
        words = self.prepared["train"].num_words
        self.bar = ProgressBar(training.epochs, steps, words, self.options.show_progress)
        callbacks = [epoch, self.bar, EpochEnd(self._finish_epoch)]
        self.model.optimizer.learning_rate.assign(self.schedule.learning_rate)
        try:
            self.model.fit(
                dataset,
                initial_epoch=self.schedule.epoch,
                epochs=training.epochs,
                callbacks=callbacks,
                shuffle=False,
                verbose=0,
            )
        finally:
            self.bar.close()
            self.board.close()

    def _batches(self, split: str, **order: Any) -> tf.data.Dataset:
        shuffled = "seed" in order
        return packed_batches(
            self.prepared[split],
            self.config.training.batch_size,
            separator=self.separator,
            length_multiple=self.multiple,
            groups=self.replicas if shuffled else 1,
            **order,
        )

    def _finish_epoch(self, epoch: int, logs: dict[str, float]) -> bool:
        """Scores the dev split, decides how to go on, and saves everything."""
        logits = np.concatenate([self.model.predict_on_batch(inputs) for inputs, _ in self.dev])
        labels = self.prepared["dev"].labels
        confusion = confusion_matrix(labels, logits.argmax(-1), len(self.config.class_names))
        accuracy = Evaluation(confusion, self.config.class_names).accuracy
        rate = float(np.array(self.model.optimizer.learning_rate))
        if self.schedule.finish_epoch(logs["loss"], accuracy):
            self.best = weights_of(self.model)
        self.model.optimizer.learning_rate.assign(self.schedule.learning_rate)
        record = {
            "epoch": epoch,
            "train_loss": logs["loss"],
            "train_accuracy": logs["accuracy"],
            "dev_loss": _cross_entropy(logits, labels),
            "dev_accuracy": accuracy,
            "train_learning_rate": rate,
            "train_gradient_norm": take_gradient_norm(self.model.optimizer),
            "train_words_per_second": self.prepared["train"].num_words / self.bar.seconds,
            "seconds": self.bar.seconds,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self.records.append(record)
        assert self.board is not None
        self.board.write_epoch(epoch, record, confusion, self.model)
        self._save()
        if self.options.show_progress:
            mark = "  best so far" if self.schedule.best_epoch == epoch else ""
            print(
                f"epoch {epoch}/{self.config.training.epochs}  "
                f"loss {logs['loss']:.4f}  accuracy {logs['accuracy']:.4f}  "
                f"dev accuracy {accuracy:.4f}  "
                f"{record['train_words_per_second']:,.0f} words/s{mark}",
                flush=True,
            )
        stop = self.after_epoch(record) if self.after_epoch else False
        return stop or self.schedule.finished

    def _save(self) -> None:
        """Writes the epoch. `last.npz` comes first: what follows can be made from it."""
        meta = {"schedule": self.schedule.state(), "records": self.records}
        save_state(self.run.last_file, self.model, self.best, meta)
        self._write_derived()

    def _write_derived(self) -> None:
        save_weights(self.run.best_file, self.best)
        lines = [json.dumps(record) + "\n" for record in self.records]
        write_text(self.run.metrics_file, "".join(lines))
        write_text(self.run.card_file, model_card(self.run, self.config, self.records))

    def _restore(self) -> None:
        if not self.run.last_file.exists():
            return
        self.best, meta = restore_state(self.run.last_file, self.model)
        self.schedule = Schedule(self.config.training, **meta["schedule"])
        self.records = meta["records"]
        self._write_derived()


def _cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=-1))
    return float(np.mean(log_sums - shifted[np.arange(len(labels)), labels]))
