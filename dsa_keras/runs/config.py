"""What `config.json` of a run folder holds."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.runs import format_1

if TYPE_CHECKING:
    from dsa_keras.datasets import Dataset, Origin
    from dsa_keras.objectives.monitor import Monitor

FORMAT = 2
_NEEDED = ("task", "model", "training")


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run, and what its data was.

    Attributes:
        task: the name the data set was asked for by.
        model: the network.
        training: how it was trained.
        data: `data_dir` and `options` of the data set (both None if it was made in Python),
            `examples` per split, and the data's `fingerprint`.
        vectors: the files of word vectors, and what was found in them.
        options: `jit`, `precision`, `deterministic`.
        versions: of the libraries.
        made_by: the command that made it.
    """

    task: str
    model: ModelConfig
    training: TrainingConfig
    data: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    made_by: str = "train"

    @property
    def recipe(self) -> Recipe:
        """The network and how it was trained."""
        return Recipe(self.model, self.training)

    @property
    def monitor(self) -> Monitor:
        """The figure that chose the epoch."""
        return self.recipe.monitor

    @property
    def origin(self) -> Origin | None:
        """How the data was loaded; None if it was made in Python."""
        from dsa_keras.datasets import Origin

        if self.data.get("options") is None:
            return None
        return Origin(self.data.get("data_dir"), self.data["options"])

    @property
    def vector_files(self) -> list[str]:
        """The files of word vectors."""
        return list(self.vectors.get("files") or [])

    def dataset(self, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
        """Loads the data of the run again.

        Args:
            data_dir: where it is now, if it has moved.

        Raises:
            DataError: if it was made in Python, or is not of the same kind any more.
        """
        from dsa_keras.datasets import load_dataset

        origin = self.origin
        if origin is None:
            raise DataError(
                "the run was trained on a data set that was made in Python",
                where=self.task,
                hint="Give the data set itself, in Python",
            )
        found = load_dataset(self.task, data_dir or origin.data_dir, **origin.options)
        self.check_dataset(found, str(data_dir or self.task))
        return found

    def check_dataset(self, dataset: Dataset, where: str) -> None:
        """Raises DataError unless the data is about what the model says."""
        found, own = dataset.objective, self.model.objective
        if dataset.inputs != self.model.inputs or not own.fits(found):
            raise DataError(
                f"the data is {dataset.inputs.what}, {found.name}: {found.summary()} The run is "
                f"{self.model.inputs.what}, {own.name}: {own.summary()}",
                where=where,
                hint="Give the data that the run was trained with",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        values |= {"model": self.model.to_dict(), "training": self.training.to_dict()}
        return {"format": FORMAT, **values}

    @classmethod
    def from_dict(cls, values: Any) -> RunConfig:
        """The config that `to_dict` gave, of this format or of an older one.

        Raises:
            ConfigError: if it is none.
        """
        if not isinstance(values, dict):
            raise ConfigError("is not a JSON object")
        values = dict(values)
        number = values.pop("format", None)
        if number == format_1.FORMAT:
            values = format_1.migrated(values)
        elif number != FORMAT:
            raise ConfigError(
                f"is of format {number!r:.40}, which this version does not know",
                hint="Train again with this version",
            )
        kinds: dict[str, type] = {"task": str, "model": dict, "training": dict, "made_by": str}
        for one in dataclasses.fields(cls):
            kind = kinds.get(one.name, dict)
            if one.name in values and not isinstance(values[one.name], kind):
                raise ConfigError(f"its {one.name!r} is not a {kind.__name__}")
            if one.name not in values and one.name in _NEEDED:
                raise ConfigError(f"it has no {one.name!r}")
        if ":" in values["task"]:
            raise ConfigError(f"its task is no name: {values['task']!r:.80}")
        known = {one.name for one in dataclasses.fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise ConfigError(f"its key {unknown[0]!r} is not known")
        model = ModelConfig.from_dict(values["model"])
        training = TrainingConfig.from_dict(values["training"])
        recipe = Recipe(model, training)  # they must go together
        return cls(**{**values, "model": recipe.model, "training": recipe.training})
