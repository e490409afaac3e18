"""From a point of a space to configs and networks: the HyperModels, and the size of a network."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import keras_tuner
import numpy as np

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.models import build_classifier, build_pair_classifier
from tuning.settings import Settings
from tuning.spaces import LogRange, Row, Value

_EPSILON = {"adam": 1e-8, "adadelta": 1e-6}
"""PyTorch's, which the presets have for their own optimizer."""


@dataclass(frozen=True)
class Candidate:
    """A network and how it would be trained.

    Attributes:
        searched: the hyper-parameters that the search chose, by name.
        model: the network.
        training: how it would be trained.
    """

    searched: Mapping[str, Any]
    model: ModelConfig
    training: TrainingConfig


class ClassifierHyperModel(keras_tuner.HyperModel):
    """A classifier of sentences whose hyper-parameters KerasTuner chooses.

    Args:
        settings: of the search.
        num_classes: of the data.
        vocabulary_size: of the data; it matters for word vectors that are trained.
        embedding_dim: of the word vectors.
    """

    def __init__(
        self, settings: Settings, *, num_classes: int, vocabulary_size: int, embedding_dim: int
    ) -> None:
        super().__init__(tunable=True)
        self.settings, self.vocabulary_size = settings, vocabulary_size
        self.of_data = {"num_classes": num_classes, "embedding_dim": embedding_dim}

    def declare(self, hp: keras_tuner.HyperParameters) -> None:
        """Registers every row of the space, with its condition and the paper's value."""
        base = self.settings.base(self.settings.fixed.get("encoder", "dsa-single"))
        paper = {**vars(base.model), **vars(base.training)}
        for row in self.settings.rows:
            _declare(hp, row, paper[row.name], list(row.when.items()), self._keys())

    def candidate(self, values: Mapping[str, Any]) -> Candidate:
        """The configs of a point of the space, as KerasTuner has it."""
        searched: dict[str, Any] = {}
        for row in self.settings.rows:
            if row.key in values and all(searched.get(name) in row.when[name] for name in row.when):
                searched[row.name] = _decoded(row, values[row.key])
        encoder = searched.get("encoder") or self.settings.fixed.get("encoder", "dsa-single")
        base = self.settings.base(encoder)
        changes = dict(searched)
        if "optimizer" in searched and "epsilon" not in self.settings.fixed:
            changes["epsilon"] = _EPSILON[searched["optimizer"]]
        model = _changed(base.model, changes).replace(**self.of_data)
        return Candidate(searched, model, _changed(base.training, changes))

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """The network of a point of the space."""
        self.declare(hp)
        return self.build_network(self.candidate(hp.values).model)

    def build_network(self, model: ModelConfig) -> keras.Model:
        """The network of a config, without its word vectors if these are not trained."""
        words = self.vocabulary_size if model.train_embeddings else 2
        return self._network(model.replace(vocabulary_size=words))

    def count_parameters(self, model: ModelConfig) -> int:
        """Trainable parameters, the number of the paper's Table 1."""
        same_size: dict[str, Any] = {"num_iterations": 1, "embedding_dropout": 0.0, "dropout": 0.0}
        same_size |= {"head_dropout": 0.0, "initial_scale": "none"}
        words = self.vocabulary_size if model.train_embeddings else 2
        return _count(self._network, model.replace(vocabulary_size=words, **same_size))

    _network = staticmethod(build_classifier)

    def _keys(self) -> dict[str, str]:
        """The name in KerasTuner of each hyper-parameter that others depend on."""
        return {row.name: row.key for row in self.settings.rows if not row.when}


class PairClassifierHyperModel(ClassifierHyperModel):
    """The same for pairs of sentences."""

    _network = staticmethod(build_pair_classifier)


@functools.cache
def _count(build: Callable[[ModelConfig], keras.Model], model: ModelConfig) -> int:
    count = sum(int(np.prod(one.shape)) for one in build(model).trainable_variables)
    keras.backend.clear_session()
    return count


def _declare(
    hp: keras_tuner.HyperParameters,
    row: Row,
    paper: Value,
    conditions: list[tuple[str, tuple[Value, ...]]],
    keys: Mapping[str, str],
) -> None:
    if conditions:
        (parent, allowed), *others = conditions
        with hp.conditional_scope(keys[parent], [_encoded(value) for value in allowed]):
            _declare(hp, row, paper, others, keys)
    elif isinstance(row.values, LogRange):
        low, high = row.values.low, row.values.high
        inside = isinstance(paper, int | float) and low <= paper <= high
        hp.Float(row.key, low, high, sampling="log", default=paper if inside else None)
    else:
        default = _encoded(paper) if paper in row.values else None
        hp.Choice(row.key, [_encoded(value) for value in row.values], default=default)


def _encoded(value: Value) -> int | float | str:
    """KerasTuner has no choice among tuples, so these become text."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _decoded(row: Row, value: Any) -> Any:
    if isinstance(row.values, LogRange):
        return float(f"{value:.4g}")
    return next(choice for choice in row.values if _encoded(choice) == value)


def _changed(config: Any, changes: Mapping[str, Any]) -> Any:
    names = {one.name for one in dataclasses.fields(config)}
    return config.replace(**{name: value for name, value in changes.items() if name in names})
