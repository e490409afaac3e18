"""What a network is and how it is trained, as frozen settings; a recipe is one of each.

Nothing here names an encoder, a head or an objective: a `ModelConfig` holds one of each kind, with
its own settings. This module needs no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS, Encoder, encoder_of
from dsa_keras.errors import ConfigError, nearest
from dsa_keras.heads import DEFAULT_HEAD, HEADS, Head, head_of
from dsa_keras.inputs import SENTENCE, Inputs
from dsa_keras.objectives import DEFAULT_OBJECTIVE, OBJECTIVES, Objective, objective_of
from dsa_keras.objectives.monitor import Monitor
from dsa_keras.settings import Settings, from_data


@dataclass(frozen=True)
class ModelConfig(Settings):
    """What the network is: words, an encoder, a head, an objective. The defaults are SNLI's.

    Attributes:
        encoder: from the words of a sentence to its vector.
        head: from sentence vectors to raw outputs.
        objective: what the model says.
        inputs: one sentence or two.
        vocabulary_size: number of word ids, 0 (padding) and 1 (unknown) included.
        embedding_dim: d_0, size of the word vectors.
        embedding_dropout: rate on the word vectors.
        train_embeddings: whether the word vectors are trained; the paper fixes them.

    Example:

    >>> config = ModelConfig().replace(vocabulary_size=1000, units=300)
    >>> config.encoder.units
    300
    """

    encoder: Encoder = field(default_factory=lambda: ENCODERS.get(DEFAULT_ENCODER)())
    head: Head = field(default_factory=lambda: HEADS.get(DEFAULT_HEAD)())
    objective: Objective = field(default_factory=lambda: OBJECTIVES.get(DEFAULT_OBJECTIVE)())
    inputs: Inputs = SENTENCE
    vocabulary_size: int = from_data(2)
    embedding_dim: int = 300
    embedding_dropout: float = 0.3
    train_embeddings: bool = False

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        for name, kind in _PARTS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ConfigError(f"{name} must be of type {kind.__name__}. Received: {value!r}")
        self.require(
            "vocabulary_size", self.vocabulary_size >= 2, "at least 2 (padding and unknown)"
        )
        self.require_each(("embedding_dim",), "at least 1")
        self.require_each(("embedding_dropout",), "in [0, 1)")

    @classmethod
    def own_choices(cls) -> tuple[str, ...]:
        """The hyper-parameters that belong to neither encoder, head nor objective."""
        return tuple(name for name in cls.choices() if name not in _PARTS)

    def choosable(self) -> tuple[str, ...]:
        """The hyper-parameters that a user chooses, those of all parts included."""
        names = [name for part in self._parts().values() for name in part.choices()]
        return tuple(dict.fromkeys((*names, *self.own_choices())))

    def hyper_parameters(self) -> dict[str, Any]:
        """All that was chosen, by name; what several parts share is named once."""
        values: dict[str, Any] = {"encoder": self.encoder.name}
        for part in reversed(self._parts().values()):
            values |= part.to_dict()
        values |= {name: getattr(self, name) for name in self.own_choices()}
        return {name: values[name] for name in ("encoder", *self.choosable())}

    def replace(self, **changes: Any) -> Self:
        """The same config with some values changed, wherever they belong.

        Raises:
            ConfigError: for a name that no part has.
        """
        own = {name: changes.pop(name, getattr(self, name)) for name in self.hints()}
        parts = type(self)(**own)._parts()
        known = {*own, *(name for part in parts.values() for name in part.hints())}
        for name in changes:
            if name not in known:
                raise ConfigError(
                    f"{name!r} is no hyper-parameter of "
                    f"{', '.join(part.name for part in parts.values())}",
                    hint=nearest(name, sorted(known)),
                )
        for kind, part in parts.items():
            of_part = {name: value for name, value in changes.items() if name in part.hints()}
            own[kind] = part.replace(**of_part)
        return type(self)(**own)

    def _parts(self) -> dict[str, Encoder | Head | Objective]:
        """What has hyper-parameters of its own, by kind."""
        return {"encoder": self.encoder, "head": self.head, "objective": self.objective}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        own = {name: getattr(self, name) for name in self.hints() if name not in _PARTS}
        parts = {name: getattr(self, name).to_json() for name in _PARTS}
        return {**parts, **own}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` gave.

        Raises:
            ConfigError: for a name or a value that cannot be.
        """
        values = dict(values)
        for name, made in (
            ("encoder", encoder_of),
            ("head", head_of),
            ("objective", objective_of),
            ("inputs", Inputs.from_json),
        ):
            if name in values:
                values[name] = made(values[name])
        return super().from_dict(values)


_PARTS: dict[str, type] = {
    "encoder": Encoder,
    "head": Head,
    "objective": Objective,
    "inputs": Inputs,
}
"""The fields of a `ModelConfig` that have a form of their own in JSON."""


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How the network is trained. The defaults are those of the paper on SNLI.

    Attributes:
        tokenizer: `ptb`, `kim` or `whitespace`.
        lowercase: whether `Great` and `great` are one word; with `kim` they always are.
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
        early_stopping: epochs without a better figure of the dev split before training stops; 0
            never stops early.
        monitor: figure of the dev split that chooses the epoch, such as `accuracy`, `macro-f1`,
            `spearman` or `loss`; the objective's own unless one is named.
        seed: of weights, shuffling, dropout and vectors of unknown words.
    """

    tokenizer: Literal["ptb", "kim", "whitespace"] = "ptb"
    lowercase: bool = False
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
    monitor: str = ""
    seed: int = 0

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require_each(("learning_rate", "epsilon", "plateau_factor"), "positive")
        least = ("oov_range", "l2", "plateau_min_delta", "early_stopping", "seed")
        self.require_each(least, "at least 0")
        self.require_each(("batch_size", "plateau_patience", "epochs"), "at least 1")
        self.require_each(("rho", "averaging"), "in [0, 1)")


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained.

    Attributes:
        model: the network.
        training: how it is trained.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        Monitor(self.model.objective, self.training.monitor)  # raises if there is no such figure

    @property
    def monitor(self) -> Monitor:
        """The figure that chooses the epoch."""
        return Monitor(self.model.objective, self.training.monitor)

    def replace(self, **changes: Any) -> Recipe:
        """The same recipe with some hyper-parameters changed, wherever they belong.

        Raises:
            ConfigError: for a name that nothing here has.
        """
        names = TrainingConfig.hints()
        of_training = {name: value for name, value in changes.items() if name in names}
        of_model = {name: value for name, value in changes.items() if name not in names}
        return Recipe(self.model.replace(**of_model), self.training.replace(**of_training))

    def hyper_parameters(self) -> dict[str, Any]:
        """All that was chosen, by name."""
        return {**self.model.hyper_parameters(), **self.training.to_dict()}
