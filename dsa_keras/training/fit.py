"""One call of `fit` on packed batches, and what is decided and saved after every epoch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.data.batches import LENGTH_MULTIPLE, Prepared, num_batches, packed_batches
from dsa_keras.errors import ConfigError
from dsa_keras.files import write_text
from dsa_keras.models import (
    assign_vectors,
    build_classifier,
    build_pair_classifier,
    head_features,
    pack_classifier,
)
from dsa_keras.sentence_model import SentenceModel
from dsa_keras.training.averaging import WeightAverage
from dsa_keras.training.board import Board
from dsa_keras.training.callbacks import EpochEnd, EpochVariable, ProgressBar
from dsa_keras.training.card import model_card
from dsa_keras.training.evaluation import Evaluation, confusion_matrix
from dsa_keras.training.optimizers import build_optimizer, take_gradient_norm
from dsa_keras.training.run import Run, RunConfig
from dsa_keras.training.schedule import Schedule
from dsa_keras.training.weights import restore_state, save_state, save_weights, weights_of

_STATISTICS_EXAMPLES = 8192
"""Training examples from which batch norm's statistics of averaged weights are taken."""


@dataclass(frozen=True)
class Options:
    """How training runs on the machine; none of it changes what is computed, beyond rounding.

    Attributes:
        jit: XLA: `on`, `off`, or `auto`: on with a GPU. On a CPU graph mode is faster: 13,900
            against 3,100 words/s on packed SST phrases (13,300 and 5,400 without dropout).
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


AfterEpoch = Callable[[dict[str, Any]], bool]
"""Takes the figures of an epoch once its state is saved; returns whether to stop there."""


def fit(
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
    strategy, jit = _placement(options, config.model.encoder)
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
                # Given by its name, it would be made within the step, which is then traced twice.
                metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
                jit_compile=jit,
            )
            packed.optimizer.build(packed.trainable_variables)
        if options.probe is not None:
            probed = SentenceModel(model, run.vocabulary(config), config)
            after_epoch = _with_probe(options.probe, probed, after_epoch)
        epochs = _Fit(run, config, prepared, packed, strategy, options, jit, after_epoch)
        epochs.run_epochs(resumed=resumed)
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


def _placement(options: Options, encoder: str) -> tuple[tf.distribute.Strategy, bool]:
    """Where training runs, and whether XLA compiles it."""
    # These make tensors of a size that only the data tells.
    compiles = encoder not in ("bilstm", "bilstm-self-attention")
    if options.jit == "on" and not compiles:
        raise ConfigError(f"XLA cannot compile the training of {encoder}", hint="Use --jit off")
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
    jit = options.jit == "on" or (options.jit == "auto" and bool(gpus) and compiles)
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
        # XLA compiles anew for every length, so it gets fewer of them.
        self.multiple = 256 if jit else LENGTH_MULTIPLE
        self.schedule = Schedule(config.training)
        self.records: list[dict[str, Any]] = []
        self.best: dict[str, np.ndarray] = {}
        with strategy.scope():
            self.average = WeightAverage(model, config.training.averaging)
        self.dev = self._batches("dev")
        self.logits = self._inference(model)
        if self.average.decay:
            # The same examples after every epoch, a random part if there are many.
            sample = self._batches("train", seed=config.training.seed)
            batches = num_batches(_STATISTICS_EXAMPLES, config.training.batch_size)
            self.sample = sample.take(batches * self.replicas)
            self.features = self._inference(head_features(model))
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
            # To learn their shapes, Keras adds up the devices' first batches, which fails since
            # they differ in shape: it learns from one batch instead.
            example, learn = next(iter(self.dev)), self.model._maybe_symbolic_build
            self.model._maybe_symbolic_build = lambda iterator: learn(data_batch=example)
        steps = num_batches(len(self.prepared["train"]), training.batch_size)
        words = self.prepared["train"].num_words
        self.bar = ProgressBar(training.epochs, steps, words, self.options.show_progress)
        callbacks = [epoch, self.average, self.bar, EpochEnd(self._finish_epoch)]
        self.model.optimizer.learning_rate.assign(self.schedule.learning_rate)
        try:
            # An epoch a call, and its steps told: Keras takes the batches of all devices, which are
            # one step, for steps of their own, and would miss the end of an epoch.
            for number in range(self.schedule.epoch, training.epochs):
                self.model.fit(
                    dataset,
                    initial_epoch=number,
                    epochs=number + 1,
                    steps_per_epoch=steps,
                    callbacks=callbacks,
                    shuffle=False,
                    verbose=0,
                )
                if self.model.stop_training:
                    break
        finally:
            self.bar.close()
            self.board.close()

    def _batches(self, split: str, **order: Any) -> tf.data.Dataset:
        shuffled = "seed" in order
        return packed_batches(
            self.prepared[split],
            self.config.training.batch_size,
            length_multiple=self.multiple,
            groups=self.replicas if shuffled else 1,
            **order,
        )

    def _inference(self, model: keras.Model) -> Any:
        signature = [self.dev.element_spec[0]]
        return tf.function(
            lambda inputs: model(inputs, training=False),
            input_signature=signature,
            autograph=False,
        )

    def _take_statistics(self) -> None:
        """Takes batch norm's statistics of averaged weights from training examples.

        Averages of the moving statistics belong to the weights of each step, not to the average of
        the weights.
        """
        if self.average.decay:
            features = [self.features(inputs).numpy() for inputs, _ in self.sample]
            self.model.get_layer("head").take_statistics(np.concatenate(features))

    def _finish_epoch(self, epoch: int, logs: dict[str, float]) -> bool:
        """Scores the dev split, decides how to go on, and saves everything."""
        rate = float(np.array(self.model.optimizer.learning_rate))
        with self.average.in_model():
            self._take_statistics()
            logits = np.concatenate([self.logits(inputs).numpy() for inputs, _ in self.dev])
            labels = self.prepared["dev"].labels
            confusion = confusion_matrix(labels, logits.argmax(-1), len(self.config.class_names))
            accuracy = Evaluation(confusion, self.config.class_names).accuracy
            if self.schedule.finish_epoch(logs["loss"], accuracy):
                self.best = weights_of(self.model)
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
            assert self.board is not None
            self.board.write_epoch(epoch, record, confusion, self.model)
        self.model.optimizer.learning_rate.assign(self.schedule.learning_rate)
        self.records.append(record)
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
        stop = False
        if self.after_epoch:
            with self.average.in_model():
                stop = self.after_epoch(record)
        return stop or self.schedule.finished

    def _save(self) -> None:
        """Writes the epoch. `last.npz` comes first: what follows can be made from it."""
        meta = {"schedule": self.schedule.state(), "records": self.records}
        aside = {"best": self.best, "average": self.average.state()}
        save_state(self.run.last_file, self.model, aside, meta)
        self._write_derived()

    def _write_derived(self) -> None:
        save_weights(self.run.best_file, self.best)
        lines = [json.dumps(record) + "\n" for record in self.records]
        write_text(self.run.metrics_file, "".join(lines))
        write_text(self.run.card_file, model_card(self.run, self.config, self.records))

    def _restore(self) -> None:
        if not self.run.last_file.exists():
            return
        aside, meta = restore_state(self.run.last_file, self.model)
        self.best = aside["best"]
        self.average.restore(aside["average"], self.run.last_file)
        self.schedule = Schedule(self.config.training, **meta["schedule"])
        self.records = meta["records"]
        self._write_derived()


def _cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=-1))
    return float(np.mean(log_sums - shifted[np.arange(len(labels)), labels]))
