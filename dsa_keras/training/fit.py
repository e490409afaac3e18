"""One call of `fit` on packed batches, and what is decided and saved after every epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.data.batches import LENGTH_MULTIPLE, Prepared, num_batches, packed_batches
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.encoders import Encoder
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.keras_private import dtype_policy, learn_shapes_from
from dsa_keras.models import Network
from dsa_keras.runs import Run, RunConfig
from dsa_keras.runs.card import model_card
from dsa_keras.runs.weights import restore_state, state_file, weights_file, weights_of
from dsa_keras.sentence_model import SentenceModel
from dsa_keras.text_encoder import TextEncoder
from dsa_keras.training.averaging import WeightAverage
from dsa_keras.training.board import Board
from dsa_keras.training.callbacks import EpochEnd, EpochVariable, ProgressBar
from dsa_keras.training.optimizers import build_optimizer, take_gradient_norm
from dsa_keras.training.schedule import Schedule

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


_JIT = ("auto", "on", "off")
_PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")

AfterEpoch = Callable[[dict[str, Any]], bool]
"""Takes the figures of an epoch once its state is saved; returns whether to stop there."""


def fit(
    run: Run,
    config: RunConfig,
    prepared: Mapping[str, Prepared],
    vocabulary: Vocabulary,
    matrix: np.ndarray | None,
    options: Options,
    after_epoch: AfterEpoch | None,
    *,
    resumed: bool,
) -> None:
    """Builds and compiles the network, restores its state if there is one, and fits.

    Keras's global dtype policy is what it was afterwards. Op determinism, where it is asked for,
    stays on in the process: TensorFlow has no public way back.
    """
    training, objective = config.training, config.model.objective
    strategy, jit = _placement(options, config.model.encoder)
    keras.utils.set_random_seed(training.seed)
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    with dtype_policy(options.precision):
        with strategy.scope():
            network = Network(config.model)
            if matrix is not None:
                network.assign_vectors(matrix)
            packed = network.packed_model
            packed.compile(
                optimizer=build_optimizer(training),
                loss=objective.training_loss(prepared["train"].targets),
                metrics=objective.metrics(),
                jit_compile=jit,
            )
            packed.optimizer.build(packed.trainable_variables)
        network.named_weights()  # what could not be saved is known before it is trained
        if options.probe is not None:
            text_encoder = TextEncoder(training.tokenizer, vocabulary, network, training.lowercase)
            probed = SentenceModel(text_encoder, config)
            after_epoch = _with_probe(options.probe, probed, after_epoch)
        epochs = _Fit(run, config, prepared, network, strategy, options, jit, after_epoch)
        epochs.run_epochs(resumed=resumed)


def _with_probe(
    probe: Callable[[int, SentenceModel], None],
    model: SentenceModel,
    after_epoch: AfterEpoch | None,
) -> AfterEpoch:
    def look(record: dict[str, Any]) -> bool:
        probe(record["epoch"], model)
        return after_epoch(record) if after_epoch else False

    return look


def check_options(options: Options, encoder: Encoder) -> None:
    """Says before anything is made why an encoder cannot be trained so.

    Raises:
        ConfigError: for a value that cannot be, or what XLA cannot compile.
    """
    for name, known in (("jit", _JIT), ("precision", _PRECISIONS)):
        if getattr(options, name) not in known:
            *most, last = known
            raise ConfigError(
                f"{name} must be {', '.join(most)} or {last}. Received: {getattr(options, name)!r}"
            )
    if options.jit != "on":
        return
    if not _compiles(encoder):
        raise ConfigError(
            f"XLA cannot compile the training of {encoder.name}", hint="Use --jit off"
        )
    if len(_devices(options)) > 1:
        raise ConfigError(
            "XLA does not go together with several devices", hint="Use --jit off or one device"
        )


def _compiles(encoder: Encoder) -> bool:
    return encoder.compiles and encoder.packs


def _devices(options: Options) -> list[str]:
    """Those that train together; none for the one that TensorFlow takes by itself."""
    return list(options.devices or _gpus())


def _gpus() -> list[str]:
    return [f"GPU:{number}" for number in range(len(tf.config.list_logical_devices("GPU")))]


def _placement(options: Options, encoder: Encoder) -> tuple[tf.distribute.Strategy, bool]:
    """Where training runs, and whether XLA compiles it."""
    check_options(options, encoder)
    devices = _devices(options)
    if len(devices) > 1:
        return tf.distribute.MirroredStrategy(devices), False
    auto = options.jit == "auto" and bool(_gpus()) and _compiles(encoder)
    return tf.distribute.get_strategy(), options.jit == "on" or auto


class _Fit:
    """One call of `fit` and what it needs at the end of each epoch."""

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        prepared: Mapping[str, Prepared],
        network: Network,
        strategy: tf.distribute.Strategy,
        options: Options,
        jit: bool,
        after_epoch: AfterEpoch | None,
    ) -> None:
        self.run, self.config, self.prepared = run, config, prepared
        self.network, self.model = network, network.packed_model
        self.objective = config.model.objective
        self.strategy, self.options, self.after_epoch = strategy, options, after_epoch
        self.replicas = strategy.num_replicas_in_sync
        # XLA compiles anew for every length, so it gets fewer of them.
        self.multiple = 256 if jit else LENGTH_MULTIPLE
        self.monitor = config.monitor
        self.schedule = Schedule(config.training, self.monitor)
        self.records: list[dict[str, Any]] = []
        self.best: dict[str, np.ndarray] = {}
        with strategy.scope():
            decay = config.training.averaging
            self.average = WeightAverage(network, self.model.optimizer, decay)
        self.dev = self._batches("dev")
        self.raw_outputs = self._inference(self.model)
        if self.average.decay:
            # The same examples after every epoch, a random part if there are many.
            sample = self._batches("train", seed=config.training.seed)
            batches = num_batches(_STATISTICS_EXAMPLES, config.training.batch_size)
            self.sample = sample.take(batches * self.replicas)
            self.features = self._inference(network.packed_features)
        self.board: Board | None = None

    def run_epochs(self, *, resumed: bool) -> None:
        """Fits from the first epoch that is not done to the last."""
        if resumed:
            self._restore()
            if self.schedule.finished:
                return
        training = self.config.training
        self.board = Board(self.run.logs, self.options.histograms)
        epoch = EpochVariable()
        dataset: Any = self._batches("train", seed=training.seed, epoch=epoch.variable)
        if self.replicas > 1:
            # Replicas take batches in turn; splitting one would tear its sentences apart.
            pipeline = dataset
            dataset = self.strategy.distribute_datasets_from_function(lambda _: pipeline)
            learn_shapes_from(self.model, next(iter(self.dev)))
        steps = num_batches(len(self.prepared["train"]), training.batch_size)
        words = self.prepared["train"].num_words
        shown = self.options.show_progress
        watched = self.objective.watched
        self.bar = ProgressBar(watched, training.epochs, steps, words, shown)
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
            head = self.config.model.head
            head.take_statistics(self.network.head, np.concatenate(features))

    def _finish_epoch(self, epoch: int, logs: dict[str, float]) -> bool:
        """Scores the dev split, decides how to go on, and saves everything."""
        rate = float(np.array(self.model.optimizer.learning_rate))
        with self.average.in_model():
            self._take_statistics()
            raw = np.concatenate([self.raw_outputs(inputs).numpy() for inputs, _ in self.dev])
            targets = self.prepared["dev"].targets
            evaluation = self.objective.evaluate(self.objective.numbers_of(raw), targets)
            dev = {
                "dev_loss": self.objective.loss_of(raw, targets),
                **{f"dev_{name}": value for name, value in evaluation.figures().items()},
            }
            figure = dev[self.monitor.key]
            is_best = self.schedule.finish_epoch(logs["loss"], figure, dev["dev_loss"])
            if is_best:
                self.best = weights_of(self.network)
            record = {
                "epoch": epoch,
                "train_loss": logs["loss"],
                **{f"train_{name}": logs[name] for name in sorted(logs) if name != "loss"},
                **dev,
                "best": is_best,
                "train_learning_rate": rate,
                "train_gradient_norm": take_gradient_norm(self.model.optimizer),
                "train_words_per_second": self.prepared["train"].num_words / self.bar.seconds,
                "seconds": self.bar.seconds,
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            assert self.board is not None
            self.board.write_epoch(epoch, record, evaluation, self.model)
        self.model.optimizer.learning_rate.assign(self.schedule.learning_rate)
        self.records.append(record)
        self._save()
        if self.options.show_progress:
            mark = "  best so far" if is_best else ""
            print(
                f"epoch {epoch}/{self.config.training.epochs}  "
                f"loss {logs['loss']:.4f}  "
                f"{self.objective.watched} {logs[self.objective.watched]:.4f}  "
                f"{self.monitor.title} {figure:.4f}  "
                f"{record['train_words_per_second']:,.0f} words/s{mark}",
                flush=True,
            )
        stop = False
        if self.after_epoch:
            with self.average.in_model():
                stop = self.after_epoch(record)
        return stop or self.schedule.finished

    def _save(self) -> None:
        """Writes the epoch."""
        meta = {"schedule": self.schedule.state(), "records": self.records}
        aside = {"best": self.best, "average": self.average.state()}
        self.run.save_epoch(
            state_file(self.network, self.model, aside, meta),
            weights_file(self.best),
            self.records,
            model_card(self.run.path, self.config, self.records),
        )

    def _restore(self) -> None:
        if not self.run.is_begun:
            return
        where = self.run.last_file
        aside, meta = restore_state(self.run.state(), self.network, self.model, where)
        self.best = aside["best"]
        self.average.restore(aside["average"], where)
        try:
            state, self.records = meta["schedule"], list(meta["records"])
            self.schedule = Schedule.of_state(self.config.training, self.monitor, state)
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"the file is damaged ({error!r})",
                where=where,
                hint="Restore it, or train again",
            ) from None
        # Folders of format 1 may have lost what is made of the state.
        if self.run.records() != self.records or not self.run.best_file.exists():
            self._save()
