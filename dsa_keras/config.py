"""Every hyper-parameter in two frozen dataclasses, and the paper's settings of them as presets.

`ModelConfig` says what the network is, `TrainingConfig` how it is trained. Both turn into JSON and
back, and refuse keys they do not know. This module needs no TensorFlow.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Self

from dsa_keras.errors import ConfigError, nearest

ENCODERS = (
    "dsa-single",
    "dsa-multiple",
    "self-attention",
    "bilstm",
    "bilstm-self-attention",
    "cnn",
)
"""The encoders by name: the paper's own and the rows it compares with."""

PAPER_TASKS = ("snli", "sst2", "sst5")
"""The tasks that the paper reports."""

DEMO_TASKS = ("demo-sentiment", "demo-nli")
"""Generated data that needs no download."""

_AVERAGING = 0.999


class JsonConfig:
    """Frozen dataclasses that are checked, and turn into JSON and back."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()  # type: ignore[call-overload]
        }

    def to_json(self) -> str:
        """JSON with a line per hyper-parameter."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config with these values; the others keep their defaults.

        Raises:
            ConfigError: for a key that is no hyper-parameter, or a value it cannot have.
        """
        types = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        for key in values:
            if key not in names:
                raise ConfigError(f"unknown hyper-parameter {key!r}", hint=nearest(key, names))
        return cls(**{key: _typed(key, value, types[key]) for key, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The config that `to_json` wrote."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(
                f"not JSON ({error})", hint="Write an object of names and values"
            ) from None
        if not isinstance(values, dict):
            raise ConfigError("not a JSON object", hint="Write an object of names and values")
        return cls.from_dict(values)

    def replace(self, **changes: Any) -> Self:
        """The same config with some values changed."""
        return self.from_dict({**self.to_dict(), **changes})

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ConfigError(f"{name} must be {expected}, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class ModelConfig(JsonConfig):
    """What the network is. The defaults are those of single DSA on SNLI.

    Attributes:
        encoder: one of `ENCODERS`.
        vocabulary_size: number of word ids, 0 (padding) and 1 (unknown) included.
        num_classes: number of classes of the task.
        embedding_dim: d_0, size of the word vectors.
        embedding_dropout: rate on the word vectors.
        train_embeddings: whether the word vectors are trained; the paper fixes them.
        kernel_sizes: k_1 and k_2, a `DenseConvBlock` for each.
        first_filters: d_1.
        filters: d_l.
        num_dense_layers: dense layers after h^1: 4 gives the parameters of Table 1, 3 is the
            appendix read literally.
        compressed_units: d_c.
        dropout: rate in every h.
        units: d_o, size of each attention's vector.
        num_attentions: m.
        num_iterations: r.
        stop_routing_gradient: whether the gradient stops at the routing scores.
        lstm_units: units of an LSTM in each direction, for the BiLSTM encoders.
        cnn_widths: windows of the `cnn` encoder.
        cnn_filters: filters per window of the `cnn` encoder.
        hidden_units: width of the classifier's hidden layers.
        num_hidden_layers: number of the classifier's hidden layers.
        head_dropout: rate before each hidden layer.
        batch_norm_momentum: share of the moving statistics that an update keeps (0.9 is PyTorch's
            0.1).
        initial_scale: He weights times the square root of the dropout `"rate"`, of the `"keep"`
            probability, or `"none"`.
    """

    encoder: str = "dsa-single"
    vocabulary_size: int = 2
    num_classes: int = 3
    embedding_dim: int = 300
    embedding_dropout: float = 0.3
    train_embeddings: bool = False
    kernel_sizes: tuple[int, ...] = (3, 5)
    first_filters: int = 150
    filters: int = 75
    num_dense_layers: int = 4
    compressed_units: int = 300
    dropout: float = 0.2
    units: int = 600
    num_attentions: int = 1
    num_iterations: int = 2
    stop_routing_gradient: bool = False
    lstm_units: int = 300
    cnn_widths: tuple[int, ...] = (3, 4, 5)
    cnn_filters: int = 100
    hidden_units: int = 300
    num_hidden_layers: int = 2
    head_dropout: float = 0.3
    batch_norm_momentum: float = 0.9
    initial_scale: Literal["rate", "keep", "none"] = "rate"

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise ConfigError(
                f"unknown encoder {self.encoder!r}", hint=nearest(self.encoder, ENCODERS)
            )
        self._require(
            "vocabulary_size", self.vocabulary_size >= 2, "at least 2 (padding and unknown)"
        )
        self._require("num_classes", self.num_classes >= 2, "at least 2")
        self._require(
            "kernel_sizes", all(k % 2 == 1 and k > 0 for k in self.kernel_sizes), "odd numbers"
        )
        self._require("kernel_sizes", len(self.kernel_sizes) > 0, "at least one odd number")
        self._require(
            "cnn_widths", len(self.cnn_widths) > 0 and min(self.cnn_widths) >= 1, "at least 1 each"
        )
        self._require("batch_norm_momentum", 0 <= self.batch_norm_momentum < 1, "in [0, 1)")
        self._require(
            "initial_scale", self.initial_scale in ("rate", "keep", "none"), "rate, keep or none"
        )
        for name in ("embedding_dropout", "dropout", "head_dropout"):
            self._require(name, 0 <= getattr(self, name) < 1, "in [0, 1)")
        for name in (
            *("embedding_dim", "first_filters", "filters", "num_dense_layers", "compressed_units"),
            *("units", "num_attentions", "num_iterations", "lstm_units", "cnn_filters"),
            *("hidden_units", "num_hidden_layers"),
        ):
            self._require(name, getattr(self, name) >= 1, "at least 1")


@dataclass(frozen=True)
class TrainingConfig(JsonConfig):
    """How the network is trained. The defaults are those of the paper on SNLI.

    Attributes:
        tokenizer: `ptb`, `kim` or `whitespace`.
        oov_range: words without a vector get one from U(-oov_range, oov_range).
        optimizer: `adam` or `adadelta`, with PyTorch's meaning of the other settings.
        learning_rate: at the start; PyTorch's defaults are 0.001 for Adam and 1.0 for Adadelta.
        epsilon: of the optimizer.
        rho: of Adadelta.
        l2: coupled L2 as PyTorch's `weight_decay`: the gradient grows by `l2` times the weight.
        batch_size: examples in a step.
        plateau_patience: checks (epochs) without progress of the training loss before the learning
            rate is lowered.
        plateau_factor: by what it is multiplied then.
        plateau_min_delta: what counts as progress.
        averaging: what is scored and kept is a moving average of the weights, of which a step keeps
            this share, with batch-norm statistics of its own, taken without dropout; 0 for the
            weights themselves.
        epochs: at most so many.
        early_stopping: epochs without a better dev accuracy before training stops; 0 never stops
            early.
        seed: of weights, shuffling, dropout and vectors of unknown words.
    """

    tokenizer: Literal["ptb", "kim", "whitespace"] = "ptb"
    oov_range: float = 0.005
    optimizer: Literal["adam", "adadelta"] = "adam"
    learning_rate: float = 0.001
    epsilon: float = 1e-8
    rho: float = 0.9
    l2: float = 1e-5
    batch_size: int = 256
    plateau_patience: int = 5
    plateau_factor: float = 0.5
    plateau_min_delta: float = 0.001
    averaging: float = 0.0
    epochs: int = 20
    early_stopping: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        self._require(
            "tokenizer", self.tokenizer in ("ptb", "kim", "whitespace"), "ptb, kim or whitespace"
        )
        self._require("optimizer", self.optimizer in ("adam", "adadelta"), "adam or adadelta")
        for name in ("learning_rate", "epsilon", "plateau_factor"):
            self._require(name, getattr(self, name) > 0, "positive")
        for name in ("oov_range", "l2", "plateau_min_delta", "early_stopping", "seed"):
            self._require(name, getattr(self, name) >= 0, "at least 0")
        for name in ("batch_size", "plateau_patience", "epochs"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        for name in ("rho", "averaging"):
            self._require(name, 0 <= getattr(self, name) < 1, "in [0, 1)")


@dataclass(frozen=True)
class Preset:
    """A model and how it is trained."""

    model: ModelConfig
    training: TrainingConfig


def preset(task: str, encoder: str = "dsa-single") -> Preset:
    """The paper's setting (its appendix) of an encoder for a task, and the weights' average.

    The average is the one thing here that the paper does not name; `results/ablations.md` shows
    what it brings. The generated tasks have a setting of their own, which learns them in a minute
    or two without any word vectors.

    Args:
        task: one of `PAPER_TASKS` or `DEMO_TASKS`.
        encoder: one of `ENCODERS`.

    Example:

    >>> preset("snli", "dsa-multiple").model.num_attentions
    8
    """
    if task not in PAPER_TASKS + DEMO_TASKS:
        raise ConfigError(f"unknown task {task!r}", hint=nearest(task, PAPER_TASKS + DEMO_TASKS))
    multiple = {"units": 300, "num_attentions": 8} if encoder == "dsa-multiple" else {}
    # Kim (2014) trains the word vectors, which is what "non-static" in the paper's Table 2 means.
    trained = {"train_embeddings": encoder == "cnn"}
    if task in DEMO_TASKS:
        return _demo_preset(
            task, ModelConfig.from_dict({"encoder": encoder, **multiple, **trained})
        )
    if task == "snli":
        head = {"hidden_units": 512, "head_dropout": 0.4} if multiple else {}
        return Preset(
            ModelConfig.from_dict({"encoder": encoder, **multiple, **trained, **head}),
            TrainingConfig(averaging=_AVERAGING),
        )
    return Preset(
        ModelConfig.from_dict(
            {
                "encoder": encoder,
                **multiple,
                **trained,
                "num_classes": 2 if task == "sst2" else 5,
                "embedding_dropout": 0.4,
                "num_hidden_layers": 1,
                "head_dropout": 0.4,
            }
        ),
        TrainingConfig(
            tokenizer="kim",
            oov_range=0.05,
            optimizer="adadelta",
            learning_rate=1.0,
            epsilon=1e-6,
            batch_size=128,
            plateau_patience=2,
            averaging=_AVERAGING,
        ),
    )


def _demo_preset(task: str, model: ModelConfig) -> Preset:
    """Half the units, less dropout and smaller batches: for small data and random word vectors.

    Nothing ends it early, since the dev accuracy stays that of guessing for the first few epochs.
    """
    head = {"num_classes": 3} if task == "demo-nli" else {"num_classes": 2, "num_hidden_layers": 1}
    return Preset(
        model.replace(
            **head,
            embedding_dim=100,
            embedding_dropout=0.1,
            first_filters=75,
            filters=40,
            compressed_units=150,
            dropout=0.1,
            units=model.units // 2,
            lstm_units=150,
            hidden_units=150,
            head_dropout=0.2,
        ),
        TrainingConfig(
            tokenizer="whitespace", oov_range=0.5, batch_size=32, epochs=15, early_stopping=0
        ),
    )


def _typed(name: str, value: Any, hint: Any) -> Any:
    """The value in the type of its field, or an error that says which type that is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in arguments:
            return value
        raise ConfigError(f"{name} must be one of {', '.join(arguments)}, got {value!r}")
    if origin is tuple:
        if isinstance(value, list | tuple) and value:
            return tuple(_typed(name, item, arguments[0]) for item in value)
        raise ConfigError(f"{name} must be a list of numbers, got {value!r}")
    number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if hint is int and number and value == int(value):
        return int(value)
    if hint is float and number:
        return float(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    raise ConfigError(f"{name} must be {kinds[hint]}, got {value!r}")
