"""From a point of a space to recipes and networks: the HyperModel, and the size of a network."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import keras_tuner
import numpy as np

from dsa_keras.config import ModelConfig, Recipe
from dsa_keras.datasets import Dataset
from dsa_keras.encoders import LogRange
from dsa_keras.encoders.encoder import Value
from dsa_keras.errors import RunError
from dsa_keras.models import Network
from dsa_keras.training.task_data import TaskData
from dsa_keras.training.trainer import fitted
from dsa_keras.tuning.settings import Settings
from dsa_keras.tuning.spaces import SearchRow

_EPSILON = {"adam": 1e-8, "adadelta": 1e-6}
"""PyTorch's, which the recipes have for their own optimizer."""


@dataclass(frozen=True)
class Candidate:
    """A network and how it would be trained.

    Attributes:
        searched: the hyper-parameters that the search chose, by name.
        recipe: all hyper-parameters, and what the data decides.
    """

    searched: Mapping[str, Any]
    recipe: Recipe


class NetworkHyperModel(keras_tuner.HyperModel):
    """A network whose hyper-parameters KerasTuner chooses.

    Args:
        settings: of the search.
        dataset: what the network is for.
        task_data: the data set as numbers.
    """

    def __init__(self, settings: Settings, dataset: Dataset, task_data: TaskData) -> None:
        super().__init__(tunable=True)
        self.settings, self.dataset, self.task_data = settings, dataset, task_data

    def declare(self, hp: keras_tuner.HyperParameters) -> None:
        """Registers every row of the space, with its condition and the recipe's value."""
        recipes = {
            name: self.settings.base(name).hyper_parameters() for name in self.settings.encoders
        }
        keys = {row.name: row.key for row in self.settings.rows if not row.when}
        for row in self.settings.rows:
            encoder = str(row.when.get("encoder", self.settings.encoders)[0])
            _declare(hp, row, recipes[encoder][row.name], list(row.when.items()), keys)

    def candidate(self, values: Mapping[str, Any]) -> Candidate:
        """The recipe of a point of the space, as KerasTuner has it.

        Raises:
            RunError: if the point is one of another space.
        """
        rows = self.settings.rows
        for key in values.keys() - {row.key for row in rows}:
            if not key.startswith("tuner/"):
                raise RunError(
                    f"the search has a hyper-parameter {key!r}, which the space "
                    f"{self.settings.space} does not have any more",
                    hint="Start a new search in another --dir",
                )
        searched: dict[str, Any] = {}
        for row in rows:
            if row.key in values and all(searched.get(name) in row.when[name] for name in row.when):
                searched[row.name] = _decoded(row, values[row.key])
        changes = {name: value for name, value in searched.items() if name != "encoder"}
        if "optimizer" in searched and "epsilon" not in self.settings.fixed:
            changes["epsilon"] = _EPSILON[searched["optimizer"]]
        encoder = searched.get("encoder", self.settings.encoders[0])
        recipe = self.settings.base(encoder).replace(**changes)
        model = fitted(recipe.model, self.dataset, self.task_data)
        return Candidate(searched, Recipe(model, recipe.training))

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """The network of a point of the space, without word vectors that are not trained."""
        self.declare(hp)
        return Network(_without_fixed_vectors(self.candidate(hp.values).recipe.model)).model

    def count_parameters(self, model: ModelConfig) -> int:
        """Trainable parameters, the number of the paper's Table 1."""
        return _count(_without_fixed_vectors(model))


def _without_fixed_vectors(model: ModelConfig) -> ModelConfig:
    return model if model.train_embeddings else model.replace(vocabulary_size=2)


@functools.cache
def _count(model: ModelConfig) -> int:
    weights = Network(model).model.trainable_variables
    count = sum(int(np.prod(one.shape)) for one in weights)
    keras.backend.clear_session(free_memory=False)
    return count


def _declare(
    hp: keras_tuner.HyperParameters,
    row: SearchRow,
    of_recipe: Any,
    conditions: list[tuple[str, tuple[Value, ...]]],
    keys: Mapping[str, str],
) -> None:
    if conditions:
        (parent, allowed), *others = conditions
        with hp.conditional_scope(keys[parent], [_encoded(value) for value in allowed]):
            _declare(hp, row, of_recipe, others, keys)
    elif isinstance(row.values, LogRange):
        low, high = row.values.low, row.values.high
        inside = isinstance(of_recipe, int | float) and low <= of_recipe <= high
        default = of_recipe if inside else None
        hp.Float(row.key, low, high, sampling="log", default=default)
    else:
        choices = [_encoded(value) for value in row.values]
        default = _encoded(of_recipe) if _encoded(of_recipe) in choices else None
        hp.Choice(row.key, choices, default=default)


def _encoded(value: Value | list[Any]) -> int | float | str:
    """KerasTuner has no choice among tuples, so these become text."""
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else value


def _decoded(row: SearchRow, value: Any) -> Any:
    if isinstance(row.values, LogRange):
        return float(f"{value:.4g}")
    return next(choice for choice in row.values if _encoded(choice) == value)
